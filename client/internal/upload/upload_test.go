package upload

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is what is sent.
var file = func() []byte {
	content := make([]byte, 3_000_000)
	rand.NewChaCha8([32]byte{2}).Read(content)
	return content
}()

// keeping is a server that keeps ranges.
func keeping() *odd {
	s := newOdd()
	s.keepsRanges = true
	return s
}

// meeting is one of so many who have different names.
type meeting struct {
	mu    sync.Mutex
	count int
	names map[string]bool
	// met is closed when all are there, or when somebody has not come for too long: a link whose
	// connection breaks on a busy machine would wait for itself.
	met  chan struct{}
	open func()
}

func newMeeting(count int) *meeting {
	m := &meeting{count: count, names: map[string]bool{}, met: make(chan struct{})}
	m.open = sync.OnceFunc(func() { close(m.met) })
	time.AfterFunc(5*time.Second, m.open)
	return m
}

func (m *meeting) join(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names[name] = true
	if len(m.names) == m.count {
		m.open()
	}
}

// recorder is asked of every event.
type recorder func(rundir.Event)

func (r recorder) Record(_ time.Duration, e rundir.Event) { r(e) }

// slowBody is read at 16 MB/s at most.
type slowBody struct{ io.ReadCloser }

func (b slowBody) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond) // This server is slow.
	return b.ReadCloser.Read(p[:min(len(p), 16<<10)])
}

// serve starts the server; dial is what the links dial by.
func serve(t *testing.T, s http.Handler, http2 bool) Options {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	// Close waits for all handlers. By HTTP/1.1 a handler that has not read the body does not notice
	// that the client is gone, so the end of the test ends the context of its request.
	ctx, cancel := context.WithCancel(context.Background())
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(cancel)
	u, err := url.Parse(server.URL + "/file")
	testkit.OK(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	o := Options{
		URL: u, File: bytes.NewReader(file), Size: quantity.Bytes(len(file)),
		TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}, Overlap: .6, Window: time.Second,
		Scheduler: schedule.Alg1{UpperLimit: 400_000, FirstRequests: 200_000}, GiveUp: 10 * time.Second, Ranged: true,
	}
	for _, name := range []string{"wifi", "lte"} {
		o.Links = append(o.Links, transfer.Link{Name: name, Device: "lo", Dial: link.Dialer{Device: "lo"}.Dial})
	}
	return o
}

func check(t *testing.T, s *odd, summary rundir.Summary, err error) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || summary.Outcome != rundir.Complete || !bytes.Equal(s.files["/file"], file) {
		t.Fatalf("%v, %s, the server has the file: %v", err, summary.Outcome, bytes.Equal(s.files["/file"], file))
	}
	var sum quantity.Bytes
	for _, l := range summary.Links {
		sum += l.Bytes
	}
	testkit.Same(t, sum, summary.Size)
}

func TestRangesOverAllLinks(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		for _, rescue := range []bool{true, false} {
			for _, scheduler := range []schedule.Scheduler{
				schedule.Naive{}, schedule.Alg1{UpperLimit: 400_000, FirstRequests: 200_000},
				schedule.Alg2{FirstRequests: 300_000},
			} {
				// Slowly; none has a request answered before both have asked, nor a
				// second one before both have sent something, or one does all.
				var mu sync.Mutex
				links, asked := map[string]string{}, map[string]bool{}
				both, sent := newMeeting(2), newMeeting(2)
				s := keeping()
				s.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
					mu.Lock()
					name := links[r.RemoteAddr]
					wait := both
					if asked[name] {
						wait = sent
					}
					asked[name] = true
					mu.Unlock()
					both.join(name)
					select {
					case <-wait.met:
					case <-r.Context().Done():
					}
					r.Body = slowBody{r.Body}
					return false
				}
				o := serve(t, s, http2)
				o.Recorder = recorder(func(e rundir.Event) {
					if end, ok := e.(*rundir.End); ok && end.Outcome == rundir.Complete {
						sent.join(end.Link)
					}
				})
				for i, l := range o.Links {
					o.Links[i].Dial = func(ctx context.Context, address string) (link.Socket, error) {
						socket, err := l.Dial(ctx, address)
						if err == nil {
							mu.Lock()
							links[socket.LocalAddr().String()] = l.Name
							mu.Unlock()
						}
						return socket, err
					}
				}
				o.Rescue, o.Scheduler = rescue, scheduler
				summary, err := Run(context.Background(), o)
				check(t, s, summary, err)
				testkit.Holds(t, summary.Links["wifi"].Bytes != 0 && summary.Links["lte"].Bytes != 0, scheduler, summary.Links)
			}
		}
	}
}

// A link has further connections where that helps, over HTTP/1.1 too.
func TestSeveralConnectionsOfALink(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		// Not before all have asked: on a busy machine others else send all before the
		// last one is made.
		s := keeping()
		o := several(serve(t, s, http2))
		all := newMeeting(2 * o.Connections.Most)
		s.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			all.join(r.RemoteAddr)
			select {
			case <-all.met:
			case <-r.Context().Done():
			}
			r.Body = slowBody{r.Body}
			return false
		}
		summary, err := Run(context.Background(), o)
		check(t, s, summary, err)
		all.mu.Lock() // The server may still take what was sent twice.
		connections := len(all.names)
		all.mu.Unlock()
		if summary.Links["wifi"].Bytes == 0 || summary.Links["lte"].Bytes == 0 || connections < 2*o.Connections.Most {
			t.Errorf("HTTP/2 %v: %d connections sent %+v", http2, connections, summary.Links)
		}
	}
}

// several lets links have several connections.
func several(o Options) Options {
	o.Rescue, o.Scheduler, o.Connections = true, schedule.Adaptive{}, &transfer.Connections{Most: 4}
	return o
}

func TestAServerWithoutRangesGetsTheWhole(t *testing.T) {
	for _, code := range []int{400, 411, 415, 501} {
		s := keeping()
		s.refuses["PUT range"] = code
		o := serve(t, s, true)
		for _, o := range []Options{o, several(o)} {
			delete(s.files, "/file")
			summary, err := Run(context.Background(), o)
			check(t, s, summary, err)
		}
	}
}

// mute takes a request and leaves it unanswered until the client gives it up.
func mute(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// busyAtTimes has a server answer the first of three requests with 503.
func busyAtTimes(s *odd, _ *Options) {
	s.before = func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n%3 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n%3 == 1
	}
}

func TestRescueMakesUpForFailures(t *testing.T) {
	var dials atomic.Int32
	tests := map[string]func(*odd, *Options){
		"busy": busyAtTimes,
		"cut": func(s *odd, _ *Options) {
			s.before = func(n int, _ http.ResponseWriter, _ *http.Request) bool {
				if n == 2 || n == 5 {
					panic(http.ErrAbortHandler)
				}
				return false
			}
		},
		"no way": func(_ *odd, o *Options) {
			o.Links[0].Dial = func(context.Context, string) (link.Socket, error) {
				dials.Add(1)
				return nil, errors.New("no way")
			}
		},
		"silent": func(s *odd, _ *Options) {
			s.before = func(n int, _ http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					<-r.Context().Done()
				}
				return n == 1
			}
		},
		"mute now and then": func(s *odd, o *Options) {
			o.Scheduler = schedule.Alg1{UpperLimit: 100_000, FirstRequests: 50_000}
			s.before = func(n int, _ http.ResponseWriter, r *http.Request) bool {
				if n%4 == 1 {
					mute(r)
				}
				return n%4 == 1
			}
		},
		"mute to the end at first": func(s *odd, o *Options) {
			o.Scheduler = schedule.Alg1{UpperLimit: 100_000, FirstRequests: 50_000}
			asked := map[string]int{}
			s.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
				var first int
				said := r.Header.Get("Content-Range")
				_, _ = fmt.Sscanf(said, "bytes %d-", &first)
				s.mu.Lock()
				asked[said]++
				isMute := first > len(file)-150_000 && asked[said] <= 2
				s.mu.Unlock()
				if isMute {
					mute(r)
				}
				return isMute
			}
		},
	}
	t.Run("all", func(t *testing.T) {
		for name, harm := range tests {
			for _, http2 := range []bool{true, false} {
				for _, connections := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, HTTP/2 %v, several connections %v", name, http2, connections), func(t *testing.T) {
						t.Parallel()
						s := keeping()
						o := serve(t, s, http2)
						// On a busy machine ten seconds may pass before rescue sends the last bytes again.
						if o.Rescue, o.GiveUp = true, time.Minute; connections {
							o = several(o)
						}
						harm(s, &o)
						summary, err := Run(context.Background(), o)
						check(t, s, summary, err)
					})
				}
			}
		}
	})
	if n := dials.Load(); n > 40 {
		t.Errorf("a link that cannot dial tried %d times", n)
	}
}

// What a connection has on its way is not lost because the server refuses one request.
func TestARefusalKeepsTheConnection(t *testing.T) {
	s := keeping()
	busyAtTimes(s, nil)
	o := serve(t, s, true)
	o.Rescue = true
	var dials atomic.Int32
	for i, l := range o.Links {
		o.Links[i].Dial = func(ctx context.Context, address string) (link.Socket, error) {
			dials.Add(1)
			return l.Dial(ctx, address)
		}
	}
	summary, err := Run(context.Background(), o)
	check(t, s, summary, err)
	testkit.Same(t, dials.Load(), 2)
}

func TestFailures(t *testing.T) {
	always := func(code int) func(*odd, *Options) {
		return func(s *odd, _ *Options) { s.refuses["PUT"] = code }
	}
	tests := map[string]struct {
		harm   func(*odd, *Options)
		rescue bool
		want   string
	}{
		"forbidden":         {always(403), true, `the server answers "403 Forbidden"`},
		"a redirect":        {always(307), true, `the server answers "307 Temporary Redirect"`},
		"never what it has": {always(400), true, `the server answers "400 Bad Request"`},
		"busy":              {always(503), false, `: the server answers "503 Service Unavailable"`},
		// Whether its kernel still takes something of what it refuses is chance.
		"busy for ever": {always(503), true, `answers "503 Service Unavailable"`},
		"no way": {func(_ *odd, o *Options) {
			for i := range o.Links {
				o.Links[i].Dial = func(context.Context, string) (link.Socket, error) { return nil, errors.New("no way") }
			}
		}, true, "nothing got to the server for 1s: wifi: no way; lte: no way"},
		"not trusted": {func(_ *odd, o *Options) { o.TLS = &tls.Config{} }, false, "certificate"},
	}
	for name, test := range tests {
		s := keeping()
		o := serve(t, s, true)
		if o.Rescue = test.rescue; o.Rescue {
			o.GiveUp = time.Second
		}
		test.harm(s, &o)
		summary, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), test.want) || summary.Outcome != rundir.Failed || summary.Error == "" {
			t.Errorf("%s: %v, %+v", name, err, summary)
		}
	}
}

// A server that takes what is sent and always refuses it afterwards is believed in
// the end, and not sent the same for ever.
func TestAServerThatRefusesWhatGotThere(t *testing.T) {
	u := &upload{Options: Options{Rescue: true, GiveUp: time.Minute}, start: time.Now(), missing: ranges.NewSet(ranges.Range{Length: 2})}
	u.ctx, u.end = context.WithCancelCause(context.Background())
	defer u.end(nil)
	c := &connection{link: &linkState{upload: u}}
	refused := func(after time.Duration) error {
		u.start = u.start.Add(-after)
		u.balance.Came(1, u.now())
		u.failed(c, &refusal{503, "503 Service Unavailable"})
		return context.Cause(u.ctx)
	}
	if err := errors.Join(refused(0), refused(50*time.Second)); err != nil {
		t.Error(err)
	}
	c.confirmed(&request{connection: c, Range: ranges.Range{Length: 1}})
	if err := errors.Join(refused(50*time.Second), refused(50*time.Second)); err != nil {
		t.Error(err)
	}
	const want = `the server has taken nothing for 1m0s: it answers "503 Service Unavailable"`
	if err := refused(20 * time.Second); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAnInterruptedUpload(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		s := keeping()
		s.before = func(_ int, _ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
		o := serve(t, s, http2)
		ctx, cancel := context.WithCancelCause(context.Background())
		reason := errors.New("enough")
		time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
		if summary, err := Run(ctx, o); !errors.Is(err, reason) || summary.Outcome != rundir.Interrupted {
			t.Errorf("HTTP/2 %v: %v, %+v", http2, err, summary)
		}
	}
}

// No server can be given what is not there.
func TestAFileThatBecomesShorter(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		o := serve(t, keeping(), http2)
		o.Rescue, o.GiveUp, o.File = true, 10*time.Second, bytes.NewReader(file[:len(file)-1000])
		started := time.Now()
		summary, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), "the file has become shorter") || summary.Outcome != rundir.Failed {
			t.Errorf("HTTP/2 %v: %v after %v, %+v", http2, err, time.Since(started), summary)
		}
	}
}
