package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/quota"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
)

// net/http waits half a second before it closes a connection with an unread request.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// takes returns a Run that takes as long as the path of the URL says, or fails as the query says.
func takes(r *Request) (Run, error) {
	path, query, _ := strings.Cut(r.URL, "?")
	length, err := time.ParseDuration(path)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", r.URL)
	}
	if r.Output == "" {
		r.Output = r.URL
	}
	return func(ctx context.Context, to transfer.Recorder) (rundir.Summary, error) {
		to.Record(0, &rundir.Size{Bytes: 1000})
		to.Record(0, &rundir.Sample{Link: "wifi", Received: 300, Throughput: 8000})
		select {
		case <-time.After(length):
		case <-ctx.Done():
			return rundir.Summary{Size: 1000}, context.Cause(ctx)
		}
		if query != "" {
			return rundir.Summary{Size: 1000}, errors.New(query)
		}
		return rundir.Summary{Size: 1000, SHA256: "ab", Links: map[string]rundir.LinkSummary{"wifi": {Bytes: 1000}}}, nil
	}, nil
}

// open opens and runs the queue of a directory. stop ends it.
func open(t *testing.T, directory string, change func(*Options)) (q *Queue, stop func()) {
	t.Helper()
	o := Options{StateDirectory: directory, Directory: directory, Parallel: 1, Prepare: takes, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- q.Run(ctx) }()
	return q, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		q.Close()
	}
}

func add(t *testing.T, q *Queue, url string) Download {
	t.Helper()
	d, err := q.Add(Request{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// states returns the downloads as ID and state.
func states(q *Queue) string {
	var list []string
	for _, d := range q.List() {
		list = append(list, fmt.Sprint(d.ID, " ", d.State))
	}
	return strings.Join(list, ", ")
}

func expect(t *testing.T, q *Queue, want string) {
	t.Helper()
	synctest.Wait()
	if got := states(q); got != want {
		t.Errorf("the queue is %q, want %q", got, want)
	}
}

func TestDownloadsRunInTheirOrderWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, stop := open(t, t.TempDir(), func(o *Options) { o.Parallel = 2 })
		defer stop()
		for _, url := range []string{"3s", "1s", "5s?no route", "1s#4"} {
			if url == "1s#4" {
				q.Prepare = func(r *Request) (Run, error) { r.URL, r.Output = "1s", "four"; return takes(r) }
			}
			add(t, q, url)
		}
		expect(t, q, "1 running, 2 running, 3 queued, 4 queued")
		time.Sleep(time.Second)
		expect(t, q, "1 running, 2 complete, 3 running, 4 queued")
		if d, _ := q.Get(3); d.Size != 1000 || d.Links["wifi"] != (Progress{300, 8000}) || d.StartedAt.IsZero() {
			t.Errorf("while it runs a download is %+v", d)
		}
		time.Sleep(3 * time.Second)
		expect(t, q, "1 complete, 2 complete, 3 running, 4 complete")
		time.Sleep(5 * time.Second)
		expect(t, q, "1 complete, 2 complete, 3 failed, 4 complete")
		if d, _ := q.Get(3); d.Error != "no route" || d.Links["wifi"] != (Progress{300, 0}) {
			t.Errorf("a failed download is %+v", d)
		}
		if d, _ := q.Get(1); d.SHA256 != "ab" || d.Links["wifi"].Received != 1000 || d.EndedAt.Sub(d.StartedAt) != 3*time.Second {
			t.Errorf("a complete download is %+v", d)
		}
	})
}

func TestARestartResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		q, stop := open(t, directory, nil)
		add(t, q, "1s")
		add(t, q, "1m")
		add(t, q, "2m")
		time.Sleep(2 * time.Second)
		expect(t, q, "1 complete, 2 running, 3 queued")
		if _, err := Open(q.Options); err == nil || !strings.Contains(err.Error(), "another daemon uses it") {
			t.Errorf("a second daemon on the same state: %v", err)
		}
		stop()

		q, stop = open(t, directory, nil)
		expect(t, q, "1 complete, 2 running, 3 queued")
		time.Sleep(time.Minute)
		expect(t, q, "1 complete, 2 complete, 3 running")
		if d := add(t, q, "1s"); d.ID != 4 {
			t.Errorf("the next download has the number %d", d.ID)
		}
		stop()
	})
}

func TestWhatBecameWrongFailsAtTheRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		q, stop := open(t, directory, nil)
		add(t, q, "1m")
		stop()
		q, stop = open(t, directory, func(o *Options) {
			o.Prepare = func(*Request) (Run, error) { return nil, errors.New("the directory is gone") }
		})
		defer stop()
		expect(t, q, "1 failed")
		if d, err := q.Wait(t.Context(), 1); err != nil || d.Error != "the directory is gone" {
			t.Errorf("the download is %+v, %v", d, err)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, stop := open(t, t.TempDir(), nil)
		defer stop()
		for _, url := range []string{"1m", "2m", "1s"} {
			add(t, q, url)
		}
		expect(t, q, "1 running, 2 queued, 3 queued")
		for _, id := range []int{2, 1} {
			if err := q.Cancel(id); err != nil {
				t.Error(err)
			}
		}
		expect(t, q, "1 cancelled, 2 cancelled, 3 running")
		time.Sleep(time.Second)
		expect(t, q, "1 cancelled, 2 cancelled, 3 complete")
		if err := q.Cancel(3); !errors.Is(err, ErrEnded) || err.Error() != "the download has ended: it is complete" {
			t.Errorf("cancelling a complete download: %v", err)
		}
		if err := q.Cancel(9); !errors.Is(err, ErrUnknown) {
			t.Errorf("cancelling what is not there: %v", err)
		}
	})
}

func TestAFileIsWrittenByOneDownload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, stop := open(t, t.TempDir(), nil)
		defer stop()
		add(t, q, "1m")
		if _, err := q.Add(Request{URL: "1m"}); !errors.Is(err, ErrTaken) {
			t.Errorf("adding the same again: %v", err)
		}
		if _, err := q.Add(Request{URL: "x"}); !errors.As(err, new(RequestError)) {
			t.Errorf("adding nonsense: %v", err)
		}
		if _, err := q.Add(Request{URL: "1m", Output: "state.json"}); !errors.Is(err, partfile.ErrExists) {
			t.Errorf("adding what is there: %v", err)
		}
		time.Sleep(2 * time.Minute)
		add(t, q, "1m")
		expect(t, q, "1 complete, 2 running")
	})
}

func TestTheQueueWaitsForTheNextPeriodWhenAllCapsAreReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		lte := &quota.Link{Name: "lte", Cap: 1000, Period: quota.Day}
		begin := lte.Usage().Since
		lte.Restore(quota.Usage{Since: begin, Bytes: 1000})
		options := func(o *Options) {
			o.Links = []*quota.Link{lte}
			o.Prepare = func(r *Request) (Run, error) {
				run, err := takes(r)
				return func(ctx context.Context, to transfer.Recorder) (rundir.Summary, error) {
					if err := lte.Err(); err != nil {
						return rundir.Summary{}, fmt.Errorf("link lte: %w", err)
					}
					return run(ctx, to)
				}, err
			}
		}
		q, stop := open(t, directory, options)
		add(t, q, "1s")
		add(t, q, "2s")
		expect(t, q, "1 queued, 2 queued")
		if d, _ := q.Get(1); !strings.Contains(d.Error, "the data cap of 1000 bytes is reached until ") {
			t.Errorf("the download that waits says %q", d.Error)
		}
		stop()

		// The account survives the process.
		lte = &quota.Link{Name: "lte", Cap: 1000, Period: quota.Day}
		q, stop = open(t, directory, options)
		defer stop()
		expect(t, q, "1 queued, 2 queued")
		if got := q.LinkStatus(); len(got) != 1 || got[0].Used != 1000 || got[0].Cap != 1000 || !got[0].Since.Equal(begin) {
			t.Errorf("the account is %+v", got)
		}
		time.Sleep(time.Until(begin.AddDate(0, 0, 1)) + 10*time.Second)
		expect(t, q, "1 complete, 2 complete")
	})
}

// outage is the error of a download for which no link reaches the server.
var outage = errors.Join(&download.Outage{Err: errors.New("link wifi: no such device")}, nil)

// offline returns a Prepare whose downloads fail with the error of err, or continue like those of
// takes if it is nil. starts records when each began.
func offline(err func() error, starts *[]time.Time) func(*Request) (Run, error) {
	return func(r *Request) (Run, error) {
		run, prepareErr := takes(r)
		return func(ctx context.Context, to transfer.Recorder) (rundir.Summary, error) {
			*starts = append(*starts, time.Now())
			if err := err(); err != nil {
				return rundir.Summary{}, err
			}
			return run(ctx, to)
		}, prepareErr
	}
}

// until returns a fault that ends at end.
func until(end time.Time, err error) func() error {
	return func() error {
		if time.Now().Before(end) {
			return err
		}
		return nil
	}
}

func TestADownloadWaitsUntilALinkReachesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		begin := time.Now()
		var starts []time.Time
		options := func(o *Options) { o.Prepare = offline(until(begin.Add(5*time.Minute+time.Second), outage), &starts) }
		q, stop := open(t, directory, options)
		add(t, q, "1s")
		expect(t, q, "1 waiting")
		d, _ := q.Get(1)
		if d.Error != "link wifi: no such device" || !d.RetryAt.Equal(begin.Add(time.Second)) {
			t.Errorf("the download that waits is %+v", d)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183, 243}
		if len(starts) != len(want) {
			t.Errorf("%d attempts, want %d", len(starts), len(want))
		}
		for i, at := range starts {
			if i >= len(want) || at.Sub(begin) != want[i]*time.Second {
				t.Errorf("attempt %d comes after %v", i, at.Sub(begin))
			}
		}
		stop()

		// A restarted daemon tries at once.
		q, stop = open(t, directory, options)
		defer stop()
		expect(t, q, "1 waiting")
		time.Sleep(time.Second)
		expect(t, q, "1 running")
		if d, _ := q.Get(1); d.Error != "" || !d.RetryAt.IsZero() {
			t.Errorf("the download that runs is %+v", d)
		}
		time.Sleep(time.Second)
		expect(t, q, "1 complete")
	})
}

func TestWhatWaitsKeepsNothingFromRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := func() error { time.Sleep(30 * time.Second); return outage }
		q, stop := open(t, t.TempDir(), func(o *Options) { o.Prepare = offline(dead, new([]time.Time)) })
		defer stop()
		for _, url := range []string{"1s", "2s", "3s"} {
			add(t, q, url)
		}
		time.Sleep(time.Hour)
		q.Prepare = takes
		add(t, q, "4s")
		time.Sleep(35 * time.Second)
		if d, _ := q.Get(4); d.State != Complete {
			t.Errorf("the download is %+v", d)
		}
		for id := range 3 {
			if err := q.Cancel(id + 1); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		expect(t, q, "1 cancelled, 2 cancelled, 3 cancelled, 4 complete")
	})
}

func TestADownloadWaitsAsLongAsTheServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := until(time.Now().Add(time.Second), &download.Outage{Err: errors.New("busy"), RetryAfter: time.Hour})
		q, stop := open(t, t.TempDir(), func(o *Options) { o.Prepare = offline(busy, new([]time.Time)) })
		defer stop()
		add(t, q, "1s")
		expect(t, q, "1 waiting")
		time.Sleep(time.Hour - time.Second)
		expect(t, q, "1 waiting")
		time.Sleep(time.Second)
		expect(t, q, "1 running")
	})
}

func TestNewBytesShortenTheNextWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		begin := time.Now()
		q, stop := open(t, t.TempDir(), func(o *Options) {
			o.Prepare = func(r *Request) (Run, error) {
				r.Output = "file"
				return func(_ context.Context, to transfer.Recorder) (rundir.Summary, error) {
					starts = append(starts, time.Since(begin))
					to.Record(0, &rundir.Sample{Link: "wifi", Received: 300}) // Perhaps the same bytes again.
					return rundir.Summary{}, &download.Outage{Err: errors.New("cut"), Progress: len(starts) == 4}
				}, nil
			}
		})
		defer stop()
		add(t, q, "1s")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if want := "[0s 1s 3s 7s 8s 10s]"; fmt.Sprint(starts) != want {
			t.Errorf("the attempts come after %v, want %s", starts, want)
		}
	})
}

func TestACapWithoutAPeriodFailsDownloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lte := &quota.Link{Name: "lte", Cap: 1}
		lte.Restore(quota.Usage{Bytes: 1})
		q, stop := open(t, t.TempDir(), func(o *Options) {
			o.Links = []*quota.Link{lte}
			o.Prepare = func(r *Request) (Run, error) {
				r.Output = "file"
				return func(context.Context, transfer.Recorder) (rundir.Summary, error) {
					return rundir.Summary{}, lte.Err()
				}, nil
			}
		})
		defer stop()
		add(t, q, "1s")
		expect(t, q, "1 failed")
	})
}

func TestAccountsAreWrittenWhileNothingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		l := &quota.Link{Name: "lte"}
		_, stop := open(t, directory, func(o *Options) { o.Links = []*quota.Link{l} })
		defer stop()
		l.Restore(quota.Usage{Bytes: 77})
		time.Sleep(accountInterval + time.Second)
		synctest.Wait()
		text, err := os.ReadFile(filepath.Join(directory, "state.json"))
		if err != nil || !strings.Contains(string(text), `"bytes": 77`) {
			t.Errorf("the state is %s, %v", text, err)
		}
	})
}

func TestOldEndedDownloadsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, stop := open(t, t.TempDir(), func(o *Options) { o.Parallel = 3 })
		defer stop()
		add(t, q, "10h")
		for range keptEnded + 5 {
			add(t, q, "1s")
			time.Sleep(2 * time.Second)
		}
		list := q.List()
		if ids := []int{list[0].ID, list[1].ID, list[len(list)-1].ID}; !slices.Equal(ids, []int{1, 6, keptEnded + 6}) {
			t.Errorf("the list holds %d, begins and ends with %v", len(list), ids)
		}
	})
}

func TestAStateThatCanNotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"{":             "repair or remove it",
		`{"format": 2}`: "it has format 2, this version reads 1",
	} {
		directory := t.TempDir()
		path := filepath.Join(directory, "state.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{StateDirectory: directory}); err == nil || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("state %q gives %v", text, err)
		}
	}
}

// In a directory that others can write to, a file of the queue must belong to the user.
func TestAPlantedLinkIsNotFollowed(t *testing.T) {
	for _, name := range []string{"lock", "state.json"} {
		directory := t.TempDir()
		victim, link := filepath.Join(directory, "victim"), filepath.Join(directory, name)
		if err := errors.Join(os.WriteFile(victim, []byte(`{"format": 1}`), 0o600), os.Symlink(victim, link)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{StateDirectory: directory}); err == nil || !strings.Contains(err.Error(), link+" is not used, because it is a symbolic link") {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestAStateThatCanNotBeWrittenRefusesTheDownload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		q, stop := open(t, directory, nil)
		add(t, q, "1s")
		if err := os.RemoveAll(directory); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Add(Request{URL: "2s"}); err == nil || !strings.HasPrefix(err.Error(), "the queue cannot be saved: ") {
			t.Errorf("adding gives %v", err)
		}
		if got := states(q); got != "1 queued" && got != "1 running" {
			t.Errorf("the queue is %q", got)
		}
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		stop()
	})
}
