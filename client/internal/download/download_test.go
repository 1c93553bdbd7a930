package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// The links of the tests: 10 and 5 MB/s, without any loss or slow start.
var (
	wifi = simLink{rate: 80e6, rtt: 10 * time.Millisecond}
	lte  = simLink{rate: 40e6, rtt: 30 * time.Millisecond}
)

// overhead is what HTTP/2 and TLS add to the bytes of a file: 9 B per frame
// and 22 B per record, of at most 16 KiB each, plus headers.
const overhead = 1.004

// file is the payload of the tests.
var file = func() []byte {
	content := make([]byte, 6_000_000)
	source := rand.NewChaCha8([32]byte{1})
	source.Read(content)
	return content
}()

// content serves file as H2O would.
func content(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"6b010793-5b8d80"`)
	http.ServeContent(w, r, "", time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC), bytes.NewReader(file))
}

// edited serves file with a changed header.
func edited(change func(http.Header)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { content(&editedHeader{w, change}, r) }
}

// These are such changes.
func noLength(h http.Header)    { h.Del("Content-Length") }
func noValidator(h http.Header) { h.Del("ETag"); h.Del("Last-Modified") }
func otherETag(h http.Header)   { h.Set("ETag", `"other"`) }
func encoded(h http.Header)     { h.Set("Content-Encoding", "gzip") }
func refusing206(h http.Header) { h.Set("Accept-Ranges", "none") }
func otherRange(h http.Header) {
	h.Set("Content-Range", strings.Replace(h.Get("Content-Range"), "bytes ", "bytes 1", 1))
}

// serve makes the server have another file during a test.
func serve(t *testing.T, other []byte) {
	whole := file
	file = other
	t.Cleanup(func() { file = whole })
}

// ranged makes a handler that answers HEAD as content does, and GET by get.
func ranged(get http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			content(w, r)
			return
		}
		get(w, r)
	}
}

// log keeps the events of a download.
type log struct {
	times  []time.Duration
	events []rundir.Event
}

func (l *log) Record(t time.Duration, e rundir.Event) {
	e.At(t)
	l.times = append(l.times, t)
	l.events = append(l.events, e)
}

// of returns the events of one kind.
func of[E rundir.Event](l *log) (events []E) {
	for _, e := range l.events {
		if e, ok := e.(E); ok {
			events = append(events, e)
		}
	}
	return events
}

// fileSink opens the file "file" in the directory.
func fileSink(directory string, checksum []byte) func() (Sink, error) {
	return func() (Sink, error) {
		return partfile.Create(partfile.Options{Name: filepath.Join(directory, "file"), Checksum: checksum})
	}
}

// metered counts what a server sends of bodies, or is about to.
type metered struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (m metered) Write(p []byte) (int, error) {
	m.bytes.Add(int64(len(p)))
	return m.ResponseWriter.Write(p)
}

func (m metered) Flush() { m.ResponseWriter.(http.Flusher).Flush() }

// try downloads from handler inside a bubble of fake time and checks what
// holds for every download. change may adapt the options.
func try(t *testing.T, handler http.Handler, change func(*Options, *simNet)) (rundir.Summary, *log, error) {
	t.Helper()
	directory := t.TempDir()
	var summary rundir.Summary
	var err error
	events := &log{}
	var sent atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		network := newSimNet(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(metered{w, &sent}, r)
		}))
		o := Options{
			URL: &url.URL{Scheme: "https", Host: "server", Path: "/file"},
			Links: []transfer.Link{
				{Name: "wifi", Device: "wlan0", Dial: network.dial(wifi)},
				{Name: "lte", Device: "rmnet0", Dial: network.dial(lte)},
			},
			Scheduler: schedule.Alg3{FirstRequests: 1e6, Padding: 0.1},
			Overlap:   0.6,
			Window:    time.Second,
			Output:    fileSink(directory, nil),
			TLS:       &tls.Config{RootCAs: authority},
			Log:       slog.New(slog.DiscardHandler),
			Recorders: []transfer.Recorder{events},
		}
		if change != nil {
			change(&o, network)
		}
		network.start()
		defer network.stop()
		// Fake time never ends: a download that waits for ever would, too.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		summary, err = Run(ctx, o)
	})

	for i, at := range events.times {
		if i > 0 && at < events.times[i-1] {
			t.Errorf("event %d, %+v, is from before the one above it", i, events.events[i])
		}
	}
	done := of[*rundir.Done](events)
	if len(done) != 1 || events.events[len(events.events)-1] != rundir.Event(done[0]) ||
		done[0].Outcome != summary.Outcome || done[0].Error != summary.Error || done[0].Download != summary.Download {
		t.Errorf("the last event of %d is not a done that agrees with the summary %+v", len(events.events), summary)
	}
	if requests, ends := of[*rundir.Request](events), of[*rundir.End](events); len(requests) != len(ends) {
		t.Errorf("%d requests began and %d ended", len(requests), len(ends))
	}
	var received quantity.Bytes
	for _, l := range summary.Links {
		received += l.Bytes + l.Wasted
	}
	if received > quantity.Bytes(sent.Load()) {
		t.Errorf("%d bytes are counted, of %d that the server sent", received, sent.Load())
	}
	entries, _ := os.ReadDir(directory)
	if err == nil {
		got, readErr := os.ReadFile(filepath.Join(directory, "file"))
		if readErr != nil || !bytes.Equal(got, file) || len(entries) != 1 {
			t.Errorf("the file differs from the server's, or is not alone: %v %v", entries, readErr)
		}
		if sum := sha256.Sum256(file); summary.SHA256 != hex.EncodeToString(sum[:]) || summary.Outcome != rundir.Complete {
			t.Errorf("the summary says %s, sha-256 %s", summary.Outcome, summary.SHA256)
		}
	} else {
		if len(entries) != 0 {
			t.Errorf("%v is left after a failure", entries)
		}
		if summary.Error != err.Error() || summary.SHA256 != "" {
			t.Errorf("the summary says error %q and sha-256 %q after the error %q", summary.Error, summary.SHA256, err)
		}
	}
	return summary, events, err
}

// seconds is a duration of the summary.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// within fails unless got is from low to high.
func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s is %.4f, want %.4f to %.4f", what, got, low, high)
	}
}

func TestSingle(t *testing.T) {
	summary, events, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) {
		o.Links = o.Links[:1]
		o.Scheduler = schedule.Single{}
	})
	if err != nil {
		t.Fatal(err)
	}
	// TCP, TLS, HEAD and GET take a round trip each.
	ideal := 4*wifi.rtt.Seconds() + float64(len(file))/wifi.rate.BytesPerSecond()
	within(t, "download time", seconds(summary.Download), ideal, ideal*overhead)
	if got := of[*rundir.Request](events); len(got) != 1 || got[0].Offset != 0 || got[0].Length != int64(len(file)) {
		t.Errorf("requests %+v, want one for the whole file", got)
	}
}

func TestNaiveEndsWithTheSlowerLink(t *testing.T) {
	summary, events, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) {
		o.Scheduler = schedule.Naive{}
	})
	if err != nil {
		t.Fatal(err)
	}
	half := float64(len(file)) / 2
	// The size is known by the time that the slower link is ready.
	ideal := 3*lte.rtt.Seconds() + half/lte.rate.BytesPerSecond()
	within(t, "download time", seconds(summary.Download), ideal, ideal*overhead)
	ideal = 4*wifi.rtt.Seconds() + half/wifi.rate.BytesPerSecond()
	within(t, "the fast link's time", seconds(summary.Links["wifi"].Finish), ideal, ideal*overhead)
	for _, r := range of[*rundir.Request](events) {
		if r.Length != int64(half) {
			t.Errorf("%s requests %d bytes, want half the file", r.Link, r.Length)
		}
	}
}

// The adaptive algorithms must come near the time that both links together
// need, and use both until near the end.
func TestAdaptiveAlgorithmsUseBothLinks(t *testing.T) {
	// Bytes that both could deliver from when their first could arrive.
	ready := wifi.rate.Over(4*wifi.rtt) + lte.rate.Over(3*lte.rtt)
	ideal := (float64(len(file)) + ready) / (wifi.rate + lte.rate).BytesPerSecond()
	known := func(o *Options, _ *simNet) {
		o.Links[0].Bandwidth, o.Links[1].Bandwidth = 1.3*wifi.rate, 1.3*lte.rate
	}
	for _, test := range []struct {
		name      string
		scheduler schedule.Scheduler
		// low and high bound the download time over the ideal: the last
		// requests are not re-split, so that they end apart.
		low, high float64
	}{
		{"alg1", schedule.Alg1{UpperLimit: 1_500_000, FirstRequests: 500_000}, 1.05, 1.09},
		{"alg2", schedule.Alg2{FirstRequests: 500_000}, 1.01, 1.04},
		{"alg3", schedule.Alg3{FirstRequests: 500_000, Padding: 0.1}, 1.06, 1.10},
		{"alg3 plain", schedule.Alg3{FirstRequests: 500_000, Padding: 1}, 1.01, 1.04},
	} {
		t.Run(test.name, func(t *testing.T) {
			summary, events, err := try(t, http.HandlerFunc(content), func(o *Options, n *simNet) {
				known(o, n)
				o.Scheduler = test.scheduler
			})
			if err != nil {
				t.Fatal(err)
			}
			within(t, "download time over ideal", seconds(summary.Download)/ideal, test.low, test.high)
			var sum quantity.Bytes
			for name, l := range summary.Links {
				sum += l.Bytes
				if l.Requests < 2 || l.Wasted != 0 {
					t.Errorf("%s issued %d requests and wasted %d bytes", name, l.Requests, l.Wasted)
				}
			}
			if sum != quantity.Bytes(len(file)) {
				t.Errorf("the links carried %d bytes of %d", sum, len(file))
			}
			first := map[string]bool{"wifi": true, "lte": true}
			for _, r := range of[*rundir.Request](events) {
				if first[r.Link] != (r.Rate == 0) {
					t.Errorf("request %+v: only the first of a link is issued without a throughput", r)
				}
				first[r.Link] = false
			}
		})
	}
}

func TestNextRequestAtOverlap(t *testing.T) {
	_, events, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) {
		o.Links = o.Links[:1]
		o.Scheduler = schedule.Alg1{UpperLimit: 1e6, FirstRequests: 1e6}
	})
	if err != nil {
		t.Fatal(err)
	}
	requests, ends := of[*rundir.Request](events), of[*rundir.End](events)
	if len(requests) != 6 {
		t.Fatalf("%d requests of 1 MB for 6 MB", len(requests))
	}
	// 60 % of 1 MB at 10 MB/s take 60 ms, and 40 % the 40 ms after.
	for i := range 5 {
		next := time.Duration(requests[i+1].T)
		within(t, fmt.Sprintf("time from request %d to %d", i+1, i+2), (next - time.Duration(requests[i].T)).Seconds(), 0.055, 0.105)
		within(t, fmt.Sprintf("time from request %d to the end of %d", i+2, i+1), (time.Duration(ends[i].T) - next).Seconds(), 0.035, 0.045)
	}
}

// The link that is ready first asks for the size while the other one still
// connects, and a link that comes late joins in.
func TestLateLinkJoins(t *testing.T) {
	summary, events, err := try(t, http.HandlerFunc(content), func(o *Options, n *simNet) {
		o.Links[1].Dial = n.dial(simLink{rate: 40e6, rtt: 200 * time.Millisecond})
	})
	if err != nil {
		t.Fatal(err)
	}
	if size := of[*rundir.Size](events); len(size) != 1 || size[0].Link != "wifi" || size[0].ETag != `"6b010793-5b8d80"` {
		t.Errorf("size events %+v, want one by wifi", size)
	}
	if summary.Links["lte"].Bytes == 0 {
		t.Error("the late link carried nothing")
	}
	requests := of[*rundir.Request](events)
	within(t, "time of the first request, after three round trips", seconds(requests[0].T), 0.030, 0.031)
}

func TestSamples(t *testing.T) {
	summary, events, err := try(t, http.HandlerFunc(content), nil)
	if err != nil {
		t.Fatal(err)
	}
	var received int64
	for _, s := range of[*rundir.Sample](events) {
		if s.T%rundir.SampleInterval.Nanoseconds() != 0 || s.InFlight < 0 || s.InFlight > 3 {
			t.Errorf("sample %+v is not of a regular time or has an odd number of requests", s)
		}
		if s.Link == "wifi" {
			if s.Received < received || s.RTT != 11e6 || s.MinRTT != 10e6 {
				t.Errorf("sample %+v after %d bytes", s, received)
			}
			received = s.Received
		}
	}
	within(t, "samples a link", float64(len(of[*rundir.Sample](events)))/2, seconds(summary.Download)*10-1, seconds(summary.Download)*10)
	if wifi := summary.Links["wifi"]; wifi.MinRTT != 10e6 || wifi.LastRTT != 11e6 || wifi.Device != "wlan0" || wifi.Peak > 8*10e6 || wifi.Peak < 7*10e6 {
		t.Errorf("summary of wifi: %+v", wifi)
	}
}

func TestEmptyFile(t *testing.T) {
	serve(t, nil)
	summary, events, err := try(t, http.HandlerFunc(content), nil)
	if err != nil || len(of[*rundir.Request](events)) != 0 || summary.Size != 0 {
		t.Errorf("an empty file ends with %v after %d requests", err, len(of[*rundir.Request](events)))
	}
}

func TestFileSmallerThanTheFirstRequests(t *testing.T) {
	serve(t, file[:3])
	for _, s := range []schedule.Scheduler{schedule.Naive{}, schedule.Alg3{FirstRequests: 1e6, Padding: 0.1}} {
		if _, _, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) { o.Scheduler = s }); err != nil {
			t.Errorf("%T: %v", s, err)
		}
	}
}

// Every wrong answer ends the download with an error that names the link and
// what was wrong, and nothing of it reaches the file.
func TestWrongAnswersAreRefused(t *testing.T) {
	// edit serves a range with a changed header.
	edit := func(change func(http.Header)) http.HandlerFunc { return ranged(edited(change)) }
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"whole file instead of a range": {
			ranged(func(w http.ResponseWriter, r *http.Request) { r.Header.Del("Range"); content(w, r) }),
			"answers with the whole file (200)",
		},
		"other range": {
			edit(otherRange),
			"the server announces 500000 bytes for a range of 499990",
		},
		"malformed Content-Range": {
			edit(func(h http.Header) { h.Set("Content-Range", "bytes 0-9") }),
			`Content-Range "bytes 0-9"`,
		},
		"no Content-Range": {
			edit(func(h http.Header) { h.Del("Content-Range") }),
			"says not which bytes (no Content-Range)",
		},
		"other size": {
			edit(func(h http.Header) { h.Set("Content-Range", h.Get("Content-Range")+"0") }),
			"its size was 6000000 and is 60000000 bytes",
		},
		"other ETag": {
			edit(otherETag),
			`its ETag was "6b010793-5b8d80" and is "other"`,
		},
		"weak ETag instead of a strong one": {
			edit(func(h http.Header) { h.Set("ETag", "W/"+h.Get("ETag")) }),
			"the file changed on the server",
		},
		"encoded": {
			edit(encoded),
			`encodes the file differently in each answer: first as "identity", now as "gzip"`,
		},
		"body shorter than announced": {
			ranged(func(w http.ResponseWriter, r *http.Request) { content(&shortBody{ResponseWriter: w, left: 100_000}, r) }),
			"bytes ",
		},
		"body shorter than requested, length not announced": {
			ranged(func(w http.ResponseWriter, r *http.Request) {
				content(&shortBody{ResponseWriter: &editedHeader{w, noLength}, left: 100_000}, r)
			}),
			"before the end of the requested range",
		},
		"body longer than requested, length not announced": {
			ranged(func(w http.ResponseWriter, r *http.Request) {
				content(&editedHeader{w, noLength}, r)
				w.Write(make([]byte, 100))
			}),
			"longer than the requested range",
		},
		"error for a range": {
			ranged(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }),
			"503",
		},
		"not found": {
			http.NotFound,
			"answers HEAD with 404",
		},
		"redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://other/file", http.StatusFound)
			},
			"certificate is valid for server, mirror, not other",
		},
		"ranges refused": {
			edited(refusing206),
			"Accept-Ranges: none",
		},
		"size not told": {
			func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush() },
			"does not tell the size",
		},
		"no validator": {
			edited(noValidator),
			"neither a strong ETag nor Last-Modified",
		},
	} {
		t.Run(name, func(t *testing.T) {
			summary, _, err := try(t, test.handler, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "link ") {
				t.Errorf("the error is %v, want one of a link that says %q", err, test.want)
			}
			if summary.Outcome != rundir.Failed {
				t.Errorf("the outcome is %s", summary.Outcome)
			}
		})
	}
}

// editedHeader is a response whose header is changed just before it is sent.
type editedHeader struct {
	http.ResponseWriter
	change func(http.Header)
}

func (e *editedHeader) WriteHeader(status int) {
	e.change(e.Header())
	e.ResponseWriter.WriteHeader(status)
}

func (e *editedHeader) Flush() { e.ResponseWriter.(http.Flusher).Flush() }

// shortBody is a response that ends after left bytes.
type shortBody struct {
	http.ResponseWriter
	left int
}

func (s *shortBody) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p[:min(len(p), s.left)])
	s.left -= n
	if err == nil && n < len(p) {
		if f, ok := s.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		err = errors.New("enough")
	}
	return n, err
}

// Without a strong ETag, Last-Modified or the user's checksum vouch for the
// file.
func TestOtherValidators(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(http.Header)
		options func(*Options, *simNet)
	}{
		"weak ETag, Last-Modified":        {func(h http.Header) { h.Set("ETag", "W/"+h.Get("ETag")) }, nil},
		"no ETag, Last-Modified":          {func(h http.Header) { h.Del("ETag") }, nil},
		"no validator, but a checksum":    {noValidator, func(o *Options, _ *simNet) { o.Verified = true }},
		"no validator, but one request":   {noValidator, func(o *Options, _ *simNet) { o.Links = o.Links[:1]; o.Scheduler = schedule.Single{} }},
		"ranges served but not announced": {func(h http.Header) { h.Del("Accept-Ranges") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := try(t, edited(test.change), test.options); err != nil {
				t.Error(err)
			}
		})
	}
	_, _, err := try(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content(&editedHeader{w, func(h http.Header) {
			h.Del("ETag")
			if r.Header.Get("Range") != "" {
				h.Set("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
			}
		}}, r)
	}), nil)
	if err == nil || !strings.Contains(err.Error(), "it was modified on") {
		t.Errorf("a changed Last-Modified ends with %v", err)
	}
}

func TestWrongChecksum(t *testing.T) {
	summary, _, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) {
		o.Output = fileSink(t.TempDir(), make([]byte, 32))
	})
	sum := sha256.Sum256(file)
	if want := fmt.Sprintf("the file has the SHA-256 %x instead of 0000", sum); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if summary.Outcome != rundir.Failed || summary.Download == 0 {
		t.Errorf("summary %+v", summary)
	}
}

func TestInterrupted(t *testing.T) {
	for _, after := range []time.Duration{5 * time.Millisecond, 25 * time.Millisecond, 35 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			interrupt := errors.New("interrupted by SIGINT")
			directory := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				network := newSimNet(http.HandlerFunc(content))
				network.start()
				defer network.stop()
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(after, func() { cancel(interrupt) })
				events := &log{}
				summary, err := Run(ctx, Options{
					URL:       &url.URL{Scheme: "https", Host: "server", Path: "/file"},
					Links:     []transfer.Link{{Name: "wifi", Dial: network.dial(wifi)}, {Name: "lte", Dial: network.dial(lte)}},
					Scheduler: schedule.Naive{},
					Overlap:   0.6,
					Window:    time.Second,
					Output:    fileSink(directory, nil),
					TLS:       &tls.Config{RootCAs: authority},
					Log:       slog.New(slog.DiscardHandler),
					Recorders: []transfer.Recorder{events},
				})
				if !errors.Is(err, interrupt) || summary.Outcome != rundir.Interrupted || summary.Download != after.Nanoseconds() {
					t.Errorf("error %v, summary %+v", err, summary)
				}
				for _, end := range of[*rundir.End](events) {
					if end.Outcome != rundir.Cancelled || end.Error != "" {
						t.Errorf("request ended as %+v, want cancelled", end)
					}
				}
			})
			if entries, _ := os.ReadDir(directory); len(entries) != 0 {
				t.Errorf("%v is left", entries)
			}
		})
	}
}

func TestServerDies(t *testing.T) {
	summary, events, err := try(t, http.HandlerFunc(content), func(_ *Options, n *simNet) {
		time.AfterFunc(200*time.Millisecond, n.stop)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "link ") || summary.Outcome != rundir.Failed {
		t.Errorf("error %v, outcome %s", err, summary.Outcome)
	}
	within(t, "time of the failure", seconds(summary.Download), 0.2, 0.35)
	var failed int
	for _, end := range of[*rundir.End](events) {
		if end.Outcome == rundir.Failed {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no request is recorded as failed")
	}
}

func TestLinkThatDoesNotConnect(t *testing.T) {
	broken := wifi
	broken.afterDial = refusing
	_, _, err := try(t, http.HandlerFunc(content), func(o *Options, n *simNet) { o.Links[0].Dial = n.dial(broken) })
	if err == nil || !strings.HasPrefix(err.Error(), "link wifi: network is unreachable") {
		t.Errorf("the error is %v", err)
	}
}

// A link that fails to connect after the others took all bytes is not needed.
func TestLinkThatFailsWhenNothingIsLeft(t *testing.T) {
	broken := simLink{rate: 40e6, rtt: 500 * time.Millisecond, afterDial: refusing}
	summary, _, err := try(t, http.HandlerFunc(content), func(o *Options, n *simNet) {
		o.Scheduler = everything{}
		o.Links[1].Dial = n.dial(broken)
	})
	if err != nil || summary.Links["lte"].Bytes != 0 {
		t.Errorf("error %v, summary %+v", err, summary)
	}
}

// everything is a scheduler that gives all bytes to whoever asks first.
type everything struct{}

func (everything) Next(_ int, known schedule.Known) quantity.Bytes { return known.Payload }

func TestUntrustedServer(t *testing.T) {
	_, _, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) { o.TLS = &tls.Config{} })
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("the error is %v, want one about the certificate", err)
	}
}

// Every link has a connection of its own, on which all its requests arrive.
func TestLinksDoNotShareConnections(t *testing.T) {
	type connection struct{ requests int }
	var mu sync.Mutex
	var connections []*connection
	summary, _, err := try(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			mu.Lock()
			r.Context().Value(connection{}).(*connection).requests++
			mu.Unlock()
		}
		content(w, r)
	}), func(o *Options, n *simNet) {
		o.Scheduler = schedule.Alg1{UpperLimit: 200_000, FirstRequests: 200_000}
		n.server.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			mu.Lock()
			defer mu.Unlock()
			connections = append(connections, &connection{})
			return context.WithValue(ctx, connection{}, connections[len(connections)-1])
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// The connection of the faster link comes up first.
	if len(connections) != 2 ||
		connections[0].requests != summary.Links["wifi"].Requests ||
		connections[1].requests != summary.Links["lte"].Requests {
		t.Errorf("%d connections, want 2 that served the requests of %+v", len(connections), summary.Links)
	}
}
