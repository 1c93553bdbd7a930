package download

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// partOf downloads the first bytes, which somebody reads in order, over the links and by the scheduler that set names.
func partOf(t *testing.T, n *simNet, pool *Pool, part quantity.Bytes, set func(*Options)) (rundir.Summary, *log, []byte, error) {
	t.Helper()
	window := reorder.NewWindow(part)
	var got bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(&got, window) })
	events := &log{}
	o := usual(n, events)
	o.Rescue, o.GiveUp, o.Pool, o.Part = true, time.Minute, pool, ranges.Range{Length: part}
	o.Output = func() (Sink, error) { return window, nil }
	o.Resource = &transport.Resource{Size: quantity.Bytes(len(file)), ETag: theETag}
	set(&o)
	ctx, cancel := context.WithCancel(t.Context())
	summary, err := Run(ctx, o)
	cancel()
	reading.Wait()
	return summary, events, got.Bytes(), err
}

// inARow downloads the first 2 MB again and again from the same server; between is called before each but the first. It
// returns the times from first to last byte, and how often each link was dialed.
func inARow(t *testing.T, handler http.HandlerFunc, http2 *http.HTTP2Config, times int, between func(pool *Pool, links ...*cable)) (took []time.Duration, dials [2]int) {
	t.Helper()
	const part = 2_000_000
	simulated(t, handler, func(t *testing.T, n *simNet) {
		n.server.HTTP2 = http2
		a, b := wifi, lte
		a.cable, b.cable = newCable(), newCable()
		pool := NewPool()
		defer pool.Close()
		for i := range times {
			if i > 0 {
				between(pool, a.cable, b.cable)
			}
			summary, events, got, err := partOf(t, n, pool, part, func(o *Options) {
				o.Links[0].Dial, o.Links[1].Dial = n.dial(a), n.dial(b)
			})
			testkit.Holds(t, err == nil && bytes.Equal(got, file[:part]), "download", i, len(got), err)
			summary.Size = part // all that was asked for
			checkEvents(t, summary, events)
			took = append(took, time.Duration(summary.Download))
			testkit.Same(t, summary.Links["wifi"].Bytes+summary.Links["lte"].Bytes, part, "bytes of both links", i)
			for _, e := range of[*rundir.Late](events) {
				testkit.Holds(t, e.Bytes <= maxStale, "bytes for nothing", i, e.Bytes, e.Link)
			}
		}
		dials = [2]int{len(a.cable.dials), len(b.cable.dials)}
	})
	return took, dials
}

func pausing(d time.Duration) func(*Pool, ...*cable) {
	return func(*Pool, ...*cable) { time.Sleep(d) }
}

// Downloads in a row connect once, also where the server allows few streams, and has not yet heard of the end of those
// that were cancelled.
func TestConnectionsAreKept(t *testing.T) {
	for _, limit := range []int{1, 2, 100} {
		for _, pause := range []time.Duration{0, time.Second} {
			took, dials := inARow(t, content, &http.HTTP2Config{MaxConcurrentStreams: limit}, 4, pausing(pause))
			testkit.Same(t, dials, [2]int{1, 1}, "dials of the links: streams, pause", limit, pause)
			for _, d := range took[1:] {
				// TCP and TLS take two round trips of the faster link.
				testkit.Holds(t, limit < 100 || took[0]-d >= 2*wifi.rtt, "time of the first download, and a later one", took[0], d)
			}
		}
	}
}

func TestKeptConnectionsThatAreOfNoUse(t *testing.T) {
	for name, test := range map[string]struct {
		between func(*Pool, ...*cable)
		dials   [2]int
		most    time.Duration
	}{
		"old":              {pausing(keepTime + time.Second), [2]int{2, 2}, 0},
		"of a closed pool": {func(p *Pool, _ ...*cable) { p.Close() }, [2]int{2, 2}, 0},
		"reset": {func(_ *Pool, links ...*cable) {
			for _, l := range links {
				l.reset()
			}
			time.Sleep(time.Millisecond)
		}, [2]int{2, 2}, 0},
		"forgotten by a middlebox": {func(_ *Pool, links ...*cable) {
			for _, l := range links {
				l.freeze()
				l.set(1)
			}
			time.Sleep(time.Second)
		}, [2]int{2, 2}, firstSilence + 300*time.Millisecond},
		"of a link that is gone": {func(_ *Pool, links ...*cable) { links[1].set(0) }, [2]int{1, 2}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			took, dials := inARow(t, content, nil, 2, test.between)
			testkit.Holds(t, dials[0] == test.dials[0] && dials[1] >= test.dials[1], "dials of the links", dials, test.dials)
			testkit.Holds(t, took[1] <= took[0]+test.most+time.Millisecond, "time of the second download", took[1])
		})
	}
}
