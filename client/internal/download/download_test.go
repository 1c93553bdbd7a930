package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// The links of the tests: 10 and 5 MB/s, without any loss or slow start.
var (
	wifi = simLink{rate: 80e6, rtt: 10 * time.Millisecond}
	lte  = simLink{rate: 40e6, rtt: 30 * time.Millisecond}
)

// file is the payload of the tests.
var file = func() []byte {
	content := make([]byte, 6_000_000)
	source := rand.NewChaCha8([32]byte{1})
	source.Read(content)
	return content
}()

// content serves file as H2O would.
func content(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", theETag)
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
func fileSink(directory string) func() (Sink, error) {
	return func() (Sink, error) {
		return partfile.Create(partfile.Options{Name: filepath.Join(directory, "file")})
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

// simulated tests inside a bubble of fake time, with a server that answers with handler.
func simulated(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, n *simNet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newSimNet(handler)
		defer n.stop()
		test(t, n)
	})
}

// usual are the options of a download over both links, without what the bytes are written to.
func usual(n *simNet, recorders ...transfer.Recorder) Options {
	return Options{
		URL: &url.URL{Scheme: "https", Host: "server", Path: "/file"},
		Links: []transfer.Link{
			{Name: "wifi", Device: "wlan0", Dial: n.dial(wifi)},
			{Name: "lte", Device: "rmnet0", Dial: n.dial(lte)},
		},
		Scheduler: schedule.Alg3{FirstRequests: 1e6, Padding: 0.1},
		Overlap:   0.6,
		Window:    time.Second,
		TLS:       &tls.Config{RootCAs: authority},
		Log:       slog.New(slog.DiscardHandler),
		Recorders: recorders,
	}
}

// try downloads from handler inside a bubble of fake time and checks what
// holds for every download. change may adapt the options.
func try(t *testing.T, handler http.Handler, change func(*Options, *simNet)) (rundir.Summary, *log, error) {
	t.Helper()
	directory := t.TempDir()
	var summary rundir.Summary
	var err error
	events := &log{}
	var sent atomic.Int64
	simulated(t, func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(metered{w, &sent}, r) }, func(t *testing.T, n *simNet) {
		o := usual(n, events)
		o.Output = fileSink(directory)
		if change != nil {
			change(&o, n)
		}
		// Fake time never ends: a download that waits for ever would, too.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		summary, err = Run(ctx, o)
	})

	for i, at := range events.times {
		testkit.Holds(t, i == 0 || at >= events.times[i-1], "an event is from before the one above it", i, events.events[i])
	}
	done := of[*rundir.Done](events)
	if len(done) != 1 || events.events[len(events.events)-1] != rundir.Event(done[0]) ||
		done[0].Outcome != summary.Outcome || done[0].Error != summary.Error || done[0].Download != summary.Download {
		t.Errorf("the last event of %d is not a done that agrees with the summary %+v", len(events.events), summary)
	}
	testkit.Same(t, len(of[*rundir.Request](events)), len(of[*rundir.End](events)), "requests that began, and that ended")
	var received quantity.Bytes
	for _, l := range summary.Links {
		received += l.Bytes + l.Wasted
	}
	testkit.Holds(t, received <= quantity.Bytes(sent.Load()), "counted bytes, and those that the server sent", received, sent.Load())
	entries, _ := os.ReadDir(directory)
	if err == nil {
		got, readErr := os.ReadFile(filepath.Join(directory, "file"))
		testkit.Holds(t, readErr == nil && bytes.Equal(got, file) && len(entries) == 1, "the file differs from the server's, or is not alone", entries, readErr)
		testkit.Holds(t, summary.SHA256 == fmt.Sprintf("%x", sha256.Sum256(file)) && summary.Outcome == rundir.Complete, "outcome and SHA-256 of the summary", summary.Outcome, summary.SHA256)
	} else {
		testkit.Same(t, len(entries), 0, "files after a failure", entries)
		testkit.Holds(t, summary.Error == err.Error() && summary.SHA256 == "", "error and SHA-256 of the summary, and the error", summary.Error, summary.SHA256, err)
	}
	return summary, events, err
}

// seconds is a duration of the summary.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// within fails unless got is from low to high.
func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	testkit.Holds(t, got >= low && got <= high, what, got, low, high)
}

// The adaptive algorithms must come near the time that both links together need, and use both until near the end.
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
			testkit.OK(t, err)
			within(t, "download time over ideal", seconds(summary.Download)/ideal, test.low, test.high)
			var sum quantity.Bytes
			for name, l := range summary.Links {
				sum += l.Bytes
				testkit.Holds(t, l.Requests >= 2 && l.Wasted == 0, "requests, and wasted bytes", name, l.Requests, l.Wasted)
			}
			testkit.Same(t, sum, quantity.Bytes(len(file)), "bytes that the links carried")
			first := map[string]bool{"wifi": true, "lte": true}
			for _, r := range of[*rundir.Request](events) {
				testkit.Same(t, first[r.Link], r.Rate == 0, "only the first request of a link has no throughput", r)
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
	testkit.OK(t, err)
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

func TestSamples(t *testing.T) {
	summary, events, err := try(t, http.HandlerFunc(content), nil)
	testkit.OK(t, err)
	var received int64
	for _, s := range of[*rundir.Sample](events) {
		testkit.Holds(t, s.T%rundir.SampleInterval.Nanoseconds() == 0 && s.InFlight >= 0 && s.InFlight <= 3, "a sample of no regular time, or with an odd number of requests", s)
		if s.Link == "wifi" {
			testkit.Holds(t, s.Received >= received && s.RTT == 11e6 && s.MinRTT == 10e6, "a sample, and the bytes before it", s, received)
			received = s.Received
		}
	}
	within(t, "samples a link", float64(len(of[*rundir.Sample](events)))/2, seconds(summary.Download)*10-1, seconds(summary.Download)*10)
	size := of[*rundir.Size](events)
	testkit.Holds(t, len(size) == 1 && size[0].Link == "wifi" && size[0].ETag == theETag, "one size event, by wifi", size)
	link := summary.Links["wifi"]
	testkit.Holds(t, link.MinRTT == 10e6 && link.LastRTT == 11e6 && link.Device == "wlan0", link)
	within(t, "peak", float64(link.Peak), 7*10e6, 8*10e6)
}

func TestSmallFiles(t *testing.T) {
	for size, requests := range map[int]int{0: 0, 3: 2} {
		serve(t, file[:size])
		for _, s := range []schedule.Scheduler{schedule.Naive{}, schedule.Alg3{FirstRequests: 1e6, Padding: 0.1}} {
			summary, events, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) { o.Scheduler = s })
			testkit.OK(t, err)
			testkit.Holds(t, summary.Size == quantity.Bytes(size) && len(of[*rundir.Request](events)) <= requests, "the size, and requests", summary.Size, size)
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
		"whole file instead of a range":     {ranged(noRanges), "answers with the whole file (200)"},
		"no Content-Range":                  {edit(func(h http.Header) { h.Del("Content-Range") }), "says not which bytes (no Content-Range)"},
		"other ETag":                        {edit(otherETag), `its ETag was "6b010793-5b8d80" and is "other"`},
		"weak ETag instead of a strong one": {edit(func(h http.Header) { h.Set("ETag", "W/"+h.Get("ETag")) }), "the file changed on the server"},
		"body shorter than announced":       {ranged(func(w http.ResponseWriter, r *http.Request) { content(&shortBody{ResponseWriter: w, left: 100_000}, r) }), "bytes "},
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
		"error for a range": {ranged(answering(http.StatusServiceUnavailable, "")), "503"},
		"not found":         {http.NotFound, "answers HEAD with 404"},
		"redirect":          {moved("https://other/file", http.StatusFound), "certificate is valid for server, mirror, not other"},
		"ranges refused":    {edited(refusing206), "Accept-Ranges: none"},
		"size not told":     {func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush() }, "does not tell the size"},
		"no validator":      {edited(noValidator), "neither a strong ETag nor Last-Modified"},
	} {
		t.Run(name, func(t *testing.T) {
			summary, _, err := try(t, test.handler, nil)
			testkit.Holds(t, err != nil && strings.Contains(err.Error(), test.want) && strings.HasPrefix(err.Error(), "link "), "the error, and what a link should say", err, test.want)
			testkit.Same(t, summary.Outcome, rundir.Failed, "the outcome is")
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

// Without a strong ETag, Last-Modified or the user's checksum vouch for the file.
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
			_, _, err := try(t, edited(test.change), test.options)
			testkit.OK(t, err)
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
	testkit.Holds(t, err != nil && strings.Contains(err.Error(), "it was modified on"), "a changed Last-Modified ends with", err)
}

func TestInterrupted(t *testing.T) {
	for _, after := range []time.Duration{5 * time.Millisecond, 25 * time.Millisecond, 35 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			interrupt := errors.New("interrupted by SIGINT")
			directory := t.TempDir()
			simulated(t, content, func(t *testing.T, n *simNet) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(after, func() { cancel(interrupt) })
				events := &log{}
				o := usual(n, events)
				o.Scheduler, o.Output = schedule.Naive{}, fileSink(directory)
				summary, err := Run(ctx, o)
				testkit.Holds(t, errors.Is(err, interrupt) && summary.Outcome == rundir.Interrupted && summary.Download == after.Nanoseconds(), err, summary)
				for _, end := range of[*rundir.End](events) {
					testkit.Holds(t, end.Outcome == rundir.Cancelled && end.Error == "", "an end of a request", end)
				}
			})
			entries, _ := os.ReadDir(directory)
			testkit.Same(t, len(entries), 0, "files that are left", entries)
		})
	}
}

func TestLinkThatDoesNotConnect(t *testing.T) {
	broken := wifi
	broken.afterDial = refusing
	_, _, err := try(t, http.HandlerFunc(content), func(o *Options, n *simNet) { o.Links[0].Dial = n.dial(broken) })
	testkit.Holds(t, err != nil && strings.HasPrefix(err.Error(), "link wifi: network is unreachable"), "the error is", err)
}

// A link that fails to connect after the others took all bytes is not needed.
func TestLinkThatFailsWhenNothingIsLeft(t *testing.T) {
	broken := simLink{rate: 40e6, rtt: 500 * time.Millisecond, afterDial: refusing}
	summary, _, err := try(t, http.HandlerFunc(content), func(o *Options, n *simNet) {
		o.Scheduler = everything{}
		o.Links[1].Dial = n.dial(broken)
	})
	testkit.Holds(t, err == nil && summary.Links["lte"].Bytes == 0, err, summary)
}

// everything is a scheduler that gives all bytes to whoever asks first.
type everything struct{}

func (everything) Next(_ int, known schedule.Known) quantity.Bytes { return known.Payload }

func TestUntrustedServer(t *testing.T) {
	_, _, err := try(t, http.HandlerFunc(content), func(o *Options, _ *simNet) { o.TLS = &tls.Config{} })
	testkit.Holds(t, err != nil && strings.Contains(err.Error(), "certificate"), "the error is not about the certificate", err)
}
