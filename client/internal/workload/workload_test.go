package workload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"

	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is the file of the server.
var file = func() []byte {
	content := make([]byte, 1_000_000)
	rand.NewChaCha8([32]byte{1}).Read(content)
	return content
}()

func content(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	r.Method = http.MethodGet
	w.Header().Set("ETag", `"1"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
}

// serve starts a server and returns the options of a run with it.
func serve(t *testing.T, handler http.HandlerFunc) Options {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + "/file")
	testkit.OK(t, err)
	sum := sha256.Sum256(file)
	return Options{URL: u, Size: quantity.Bytes(len(file)), Checksum: sum[:], GiveUp: 5 * time.Second}
}

var whole = []ranges.Range{{Length: quantity.Bytes(len(file))}}

func aPlayer(segments []ranges.Range) Player {
	return Player{
		// The file plays in 0.1 s.
		Media:      NewMedia(quantity.Bytes(len(file)), 80e6, 0, 1),
		Segments:   segments,
		Thresholds: Thresholds{Start: 100_000, Low: 100_000, High: 300_000},
	}
}

// all holds workloads with the number of answers that each gets.
var all = []struct {
	workload Workload
	answers  int
}{
	{aPlayer(whole), 1},
	{aPlayer(Pieces(quantity.Bytes(len(file)), 200_000)), 5},
	{Page{Objects: Pieces(quantity.Bytes(len(file)), 30_000), Connections: 6}, 34},
	{Rounds{Request: 70_000, Answers: Pieces(quantity.Bytes(len(file)), 100_000), Think: time.Millisecond}, 10},
	{Rounds{Answers: Pieces(quantity.Bytes(len(file)), 600_000)}, 2},
	{Paced{Pieces: Pieces(quantity.Bytes(len(file)), 250_000), Every: 10 * time.Millisecond}, 4},
}

func TestEveryWorkloadGetsTheFile(t *testing.T) {
	for _, test := range all {
		o := serve(t, content)
		directory := t.TempDir()
		var err error
		if o.Dir, err = rundir.Open(directory, rundir.OfWorkload); err != nil {
			t.Fatal(err)
		}
		result, err := Run(context.Background(), test.workload, o)
		if err != nil || result.Outcome != rundir.Complete || result.Bytes != o.Size || len(result.Figures) == 0 {
			t.Errorf("%s: %v, %+v", test.workload.Name(), err, result)
		}
		if err := o.Dir.Close(result); err != nil {
			t.Error(err)
		}
		lines, err := os.ReadFile(filepath.Join(directory, "workload.jsonl"))
		if got := strings.Count(string(lines), `"event":"exchange"`); err != nil || got != test.answers {
			t.Errorf("%s: %d answers are noted, want %d (%v)", test.workload.Name(), got, test.answers, err)
		}
	}
}

func TestAPlayerThatPausesReadsOn(t *testing.T) {
	o := serve(t, content)
	player := aPlayer(whole)
	player.Media = NewMedia(o.Size, 8e6, 0, 1)
	player.Thresholds = Thresholds{Start: 100_000, Low: 500_000, High: 600_000}
	begun := time.Now()
	result, err := Run(context.Background(), player, o)
	// The buffer holds 600 kB of 1 MB: 0.4 s are played before the last bytes are requested, and
	// 0.5 s are left to play then.
	if took := time.Since(begun); err != nil || took < 350*time.Millisecond {
		t.Errorf("%v after %s", err, took)
	}
	testkit.Holds(t, result.Figures["playback_s"] >= 1 && result.Figures["interruptions"] == 0, result.Figures)
}

// records counts TLS records other than those of the handshake (RFC 8446 5.1).
type records struct {
	net.Conn
	unread []byte
	count  *atomic.Int32
}

func (r *records) Read(p []byte) (int, error) {
	const head, application = 5, 23
	n, err := r.Conn.Read(p)
	r.unread = append(r.unread, p[:n]...)
	for len(r.unread) >= head {
		whole := head + int(binary.BigEndian.Uint16(r.unread[3:]))
		if len(r.unread) < whole {
			break
		}
		if r.unread[0] == application {
			r.count.Add(1)
		}
		r.unread = r.unread[whole:]
	}
	return n, err
}

type counting struct {
	net.Listener
	count *atomic.Int32
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return &records{Conn: conn, count: c.count}, err
}

// A message and its header are written at once: Multipath TCP sends separate writes over different
// links.
func TestAMessageIsWrittenAtOnce(t *testing.T) {
	var count, messages atomic.Int32
	o := serve(t, content)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content(w, r)
		const finished = 1 // This record ends the handshake.
		testkit.Same(t, count.Load(), finished+messages.Add(1), count.Load()-finished)
	}))
	server.Listener = counting{server.Listener, &count}
	server.StartTLS()
	defer server.Close()
	o.URL, _ = url.Parse(server.URL + "/file")
	authority := x509.NewCertPool()
	authority.AddCert(server.Certificate())
	o.Route.TLS = &tls.Config{RootCAs: authority}
	rounds := Rounds{Request: 12_000, Answers: Pieces(o.Size, 100_000)}
	if _, err := Run(context.Background(), rounds, o); err != nil {
		t.Fatal(err)
	}
}

// A page uses the stated number of connections, and its document comes first.
func TestConnectionsOfAPage(t *testing.T) {
	const connections = 4
	var now, first atomic.Int32
	full := make(chan struct{})
	var together sync.Once
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n := now.Add(1); {
		case first.Add(1) == 1:
			testkit.Holds(t, strings.HasPrefix(r.Header.Get("Range"), "bytes=0-"), r.Header.Get("Range"))
		case n > connections:
			t.Errorf("%d requests at a time", n)
		case n == connections:
			together.Do(func() { close(full) })
		default:
			select { // The first objects wait for one another.
			case <-full:
			case <-r.Context().Done():
			}
		}
		time.Sleep(5 * time.Millisecond) // Requests overlap, if there are more.
		now.Add(-1)
		content(w, r)
	})
	page := Page{Objects: Pieces(o.Size, 20_000), Connections: connections}
	if _, err := Run(context.Background(), page, o); err != nil {
		t.Error(err)
	}
}

func TestLateness(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 2 {
			time.Sleep(1500 * time.Millisecond) // This answer is late.
		}
		content(w, r)
	})
	result, err := Run(context.Background(), Paced{Pieces: Pieces(o.Size, 250_000), Every: 600 * time.Millisecond}, o)
	// The second piece is due at 1.2 s and arrives at 2.1 s. The next is requested then, and was due at
	// 1.8 s.
	testkit.Holds(t, err == nil && result.Figures["late"] == 2 && result.Figures["lateness_max_s"] >= 0.85, result.Figures, err)
}

func TestWhatGoesWrong(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"another file": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, len(file))))
		}, "has the SHA-256"},
		"another size": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file[1:]))
		}, "instead of"},
		"no ranges":        {func(w http.ResponseWriter, r *http.Request) { w.Write(file) }, "range"},
		"an error":         {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404"},
		"an end too early": {func(w http.ResponseWriter, r *http.Request) { cut(w, r, 10) }, "10 of the "},
		"silence":          {func(w http.ResponseWriter, r *http.Request) { silent(r) }, "nothing arrived for 50ms"},
		"silence midway":   {func(w http.ResponseWriter, r *http.Request) { cut(w, r, 4096); <-r.Context().Done() }, "nothing arrived for 50ms"},
	}
	for name, test := range tests {
		for _, one := range all {
			o := serve(t, test.handler)
			if strings.HasPrefix(name, "silence") {
				o.GiveUp = 50 * time.Millisecond
			}
			result, err := Run(context.Background(), one.workload, o)
			testkit.Holds(t, err != nil && (strings.Contains(err.Error(), test.want) || name == "another size"), name, one.workload.Name(), err)
			testkit.Holds(t, result.Outcome == rundir.Failed && result.Error != "" && result.Figures == nil, name, one.workload.Name(), result)
		}
	}
}

// silent never answers. Over HTTP/1.1 a server that has not read a body does not notice that the
// client is gone.
func silent(r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// cut sends so many bytes of a range. Then it ends the connection, unless that is all.
func cut(w http.ResponseWriter, r *http.Request, bytes int) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("ETag", `"1"`)
	text := strings.TrimPrefix(r.Header.Get("Range"), "bytes=")
	var first, last int
	fmt.Sscanf(text, "%d-%d", &first, &last)
	w.Header().Set("Content-Range", "bytes "+text+"/1000000")
	w.Header().Set("Content-Length", fmt.Sprint(last-first+1))
	w.WriteHeader(http.StatusPartialContent)
	w.Write(file[first : first+bytes])
	http.NewResponseController(w).Flush()
}

func TestAnInterruptedWorkload(t *testing.T) {
	o := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("enough")
	time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
	result, err := Run(ctx, aPlayer(whole), o)
	testkit.Holds(t, errors.Is(err, reason) && result.Outcome == rundir.Interrupted, err, result)
}
