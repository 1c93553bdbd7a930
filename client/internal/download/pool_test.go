package download

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// partOf downloads the first bytes, which somebody reads in order, over the links
// and by the scheduler that set names.
func partOf(t *testing.T, pool *Pool, part quantity.Bytes, set func(*Options)) (rundir.Summary, *log, []byte, error) {
	t.Helper()
	window := reorder.NewWindow(part)
	var got bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(&got, window) })
	events := &log{}
	o := Options{
		URL:       &url.URL{Scheme: "https", Host: "server", Path: "/file"},
		Overlap:   0.6,
		Window:    time.Second,
		Rescue:    true,
		GiveUp:    time.Minute,
		Output:    func() (Sink, error) { return window, nil },
		Resource:  &transport.Resource{Size: quantity.Bytes(len(file)), ETag: `"6b010793-5b8d80"`},
		Part:      ranges.Range{Length: part},
		Pool:      pool,
		TLS:       &tls.Config{RootCAs: authority},
		Log:       slog.New(slog.DiscardHandler),
		Recorders: []transfer.Recorder{events},
	}
	set(&o)
	ctx, cancel := context.WithCancel(t.Context())
	summary, err := Run(ctx, o)
	cancel()
	reading.Wait()
	return summary, events, got.Bytes(), err
}

// inARow downloads the first 2 MB again and again from the same server;
// between is called before each but the first. It returns the times from
// first to last byte, and how often each link was dialed.
func inARow(t *testing.T, handler http.HandlerFunc, http2 *http.HTTP2Config, times int, between func(pool *Pool, links ...*cable)) (took []time.Duration, dials [2]int) {
	t.Helper()
	const part = 2_000_000
	synctest.Test(t, func(t *testing.T) {
		network := newSimNet(handler)
		network.server.HTTP2 = http2
		a, b := wifi, lte
		a.cable, b.cable = newCable(), newCable()
		network.start()
		defer network.stop()
		pool := NewPool()
		defer pool.Close()
		for i := range times {
			if i > 0 {
				between(pool, a.cable, b.cable)
			}
			summary, events, got, err := partOf(t, pool, part, func(o *Options) {
				o.Links = []transfer.Link{{Name: "wifi", Dial: network.dial(a)}, {Name: "lte", Dial: network.dial(b)}}
				o.Scheduler = schedule.Alg3{FirstRequests: 1e6, Padding: 0.1}
			})
			if err != nil || !bytes.Equal(got, file[:part]) {
				t.Errorf("download %d: %d bytes, %v", i, len(got), err)
			}
			summary.Size = part // all that was asked for
			checkEvents(t, summary, events)
			took = append(took, time.Duration(summary.Download))
			if n := summary.Links["wifi"].Bytes + summary.Links["lte"].Bytes; n != part {
				t.Errorf("download %d: the links brought %d bytes of %d", i, n, part)
			}
			for _, e := range of[*rundir.Late](events) {
				if e.Bytes > maxStale {
					t.Errorf("download %d: %d bytes of %s came for nothing", i, e.Bytes, e.Link)
				}
			}
		}
		dials = [2]int{len(a.cable.dials), len(b.cable.dials)}
	})
	return took, dials
}

func pausing(d time.Duration) func(*Pool, ...*cable) {
	return func(*Pool, ...*cable) { time.Sleep(d) }
}

// Downloads in a row connect once.
func TestConnectionsAreKept(t *testing.T) {
	took, dials := inARow(t, content, nil, 4, pausing(time.Second))
	if dials != [2]int{1, 1} {
		t.Errorf("the links were dialed %v times", dials)
	}
	for i, d := range took[1:] {
		// TCP and TLS take two round trips of the faster link.
		if gain := took[0] - d; gain < 2*wifi.rtt {
			t.Errorf("download %d gains %v on the first, which took %v", i+1, gain, took[0])
		}
	}
}

// So do they where the server allows few streams, and has not yet heard of the
// end of those that were cancelled.
func TestConnectionsWithFewStreamsAreKept(t *testing.T) {
	for _, limit := range []int{1, 2} {
		for _, pause := range []time.Duration{0, time.Second} {
			_, dials := inARow(t, content, &http.HTTP2Config{MaxConcurrentStreams: limit}, 4, pausing(pause))
			if dials != [2]int{1, 1} {
				t.Errorf("%d streams, %v between downloads: the links were dialed %v times", limit, pause, dials)
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
			if dials[0] != test.dials[0] || dials[1] < test.dials[1] {
				t.Errorf("the links were dialed %v times, want %v", dials, test.dials)
			}
			if most := took[0] + test.most + time.Millisecond; took[1] > most {
				t.Errorf("the second download took %v, want at most %v", took[1], most)
			}
		})
	}
}

// reordering is a connection on which so many packets have come out of order.
type reordering struct {
	link.Socket
	outOfOrder *atomic.Uint32
}

func (s reordering) RoundTrip() (link.RoundTrip, error) {
	trip, err := s.Socket.RoundTrip()
	trip.OutOfOrder = s.outOfOrder.Load()
	return trip, err
}

// What came out of order in an earlier download on a kept connection has not come in
// this one.
func TestAKeptConnectionBeginsWithoutAHole(t *testing.T) {
	var largest [2]int64
	for i, before := range []uint32{0, 1000} {
		var outOfOrder atomic.Uint32
		synctest.Test(t, func(t *testing.T) {
			network := newSimNet(http.HandlerFunc(content))
			way := simLink{rate: 8e6, rtt: 60 * time.Millisecond, afterDial: func(s link.Socket) (link.Socket, error) {
				return reordering{s, &outOfOrder}, nil
			}}
			network.start()
			defer network.stop()
			pool := NewPool()
			defer pool.Close()
			for range 2 {
				_, events, _, err := partOf(t, pool, 1_000_000, func(o *Options) {
					o.Links = []transfer.Link{{Name: "wifi", Dial: network.dial(way)}}
					o.Scheduler, o.Connections = schedule.Adaptive{}, &transfer.Connections{Most: 2}
				})
				if err != nil {
					t.Error(err)
				}
				largest[i] = 0
				for _, r := range of[*rundir.Request](events) {
					largest[i] = max(largest[i], r.Length)
				}
				outOfOrder.Store(before)
			}
		})
	}
	if largest[1] != largest[0] {
		t.Errorf("the largest order is of %d bytes, without packets out of order before of %d", largest[1], largest[0])
	}
}
