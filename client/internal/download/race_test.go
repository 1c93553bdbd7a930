package download

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/tests/testkit"
)

// noRanges serves the file as a whole only.
func noRanges(w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Range")
	edited(func(h http.Header) { h.Del("Accept-Ranges") })(w, r)
}

// streamed downloads in order, through a window of 1 MiB, while read reads.
func streamed(t *testing.T, handler http.HandlerFunc, read func(r io.Reader), change func(*Options, *simNet)) (rundir.Summary, *log) {
	t.Helper()
	var summary rundir.Summary
	events := &log{}
	simulated(t, handler, func(t *testing.T, n *simNet) {
		window := reorder.NewWindow(1 << 20)
		o := usual(n, events)
		o.Rescue, o.GiveUp, o.Output = true, 5*time.Minute, func() (Sink, error) { return window, nil }
		if change != nil {
			change(&o, n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var reading sync.WaitGroup
		reading.Go(func() {
			read(window)
			cancel()
		})
		summary, _ = Run(ctx, o)
		reading.Wait()
	})
	return summary, events
}

// A reader that pauses for longer than the links have patience gets the rest all the same, over the same connections.
func TestAReaderMayPause(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"ranges": content, "no ranges": noRanges} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			var err error
			summary, events := streamed(t, handler, func(r io.Reader) {
				for _, part := range []int64{100_000, 1_000_000, int64(len(file)) - 1_200_000} {
					io.CopyN(&got, r, part)
					time.Sleep(10 * time.Minute)
				}
				_, err = got.ReadFrom(r)
			}, nil)
			testkit.Holds(t, err == nil && bytes.Equal(got.Bytes(), file), "bytes, and what the download says", got.Len(), err, summary.Error)
			testkit.Same(t, len(of[*rundir.Connected](events)), 2, "connections")
			testkit.Same(t, len(of[*rundir.Ban](events)), 0, "backoffs")
		})
	}
}

// Where there are no ranges, a winner that goes silent is given up for the others.
func TestAWinnerThatGoesSilent(t *testing.T) {
	summary, events := rescued(t, schedule.Naive{}, http.HandlerFunc(noRanges), "", func(_ *Options, n *network) {
		// It has won by then, and not ended.
		time.AfterFunc(550*time.Millisecond, func() { n.wifi.set(0) })
	})
	within(t, "download time", seconds(summary.Download), 1.5, 5)
	a, b := summary.Links["wifi"], summary.Links["lte"]
	testkit.Holds(t, b.Bytes != 0 && a.Bytes+b.Bytes == quantity.Bytes(len(file)), "bytes of wifi, of lte, and of the file", a.Bytes, b.Bytes, len(file))
	lost := of[*rundir.Failover](events)
	testkit.Holds(t, lost[len(lost)-1].Reason == stalled && lost[len(lost)-1].To == "lte", "the last failover", lost)
}

// A reader that leaves, at whatever time, is nothing to warn of.
func TestLeavingIsNoFault(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"ranges": content, "no ranges": noRanges} {
		step := 25 * time.Millisecond
		if racedetector.On {
			step *= 3
		}
		for after := 0 * time.Millisecond; after < 600*time.Millisecond; after += step {
			var warnings strings.Builder
			summary, _ := streamed(t, handler, func(r io.Reader) {
				go io.Copy(io.Discard, r)
				time.Sleep(after)
			}, func(o *Options, _ *simNet) {
				o.Log = slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			text := warnings.String()
			isRight := text == "" || name == "no ranges" && strings.Count(text, "\n") == 1 && strings.Contains(text, "the server does not serve ranges")
			testkit.Holds(t, isRight && summary.Outcome != rundir.Failed, name, after, text, summary.Error)
		}
	}
}

// A range that is still under way on a connection to which the server said goodbye is none of the race's that begins.
func TestARangeIsUnderWayWhenTheRaceBegins(t *testing.T) {
	for _, late := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			var once sync.Once
			handler := ranged(func(w http.ResponseWriter, r *http.Request) {
				first := false
				once.Do(func() { first = true })
				if !first {
					time.Sleep(5 * time.Millisecond)
					noRanges(w, r)
					return
				}
				w.Header().Set("Connection", "close")
				content(&lateBody{ResponseWriter: w, late: late}, r)
			})
			rescued(t, asksByHead, handler, "", nil)
		})
	}
}

// lateBody sends the header, and the body some time later.
type lateBody struct {
	http.ResponseWriter
	late time.Duration
	once sync.Once
}

func (b *lateBody) Write(p []byte) (int, error) {
	b.once.Do(func() {
		b.ResponseWriter.(http.Flusher).Flush()
		time.Sleep(b.late)
	})
	return b.ResponseWriter.Write(p)
}
