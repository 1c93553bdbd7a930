package download

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// readInOrder has a program read the file. It gets all of it or an error, by few requests.
func readInOrder(t *testing.T, handler http.HandlerFunc, change func(*Options, *simNet)) {
	t.Helper()
	var got bytes.Buffer
	summary, events := streamed(t, handler, func(r io.Reader) { _, _ = got.ReadFrom(r) }, change)
	testkit.Holds(t, len(of[*rundir.Request](events)) < 2000, "requests", len(of[*rundir.Request](events)))
	testkit.Holds(t, summary.Outcome != rundir.Complete || bytes.Equal(got.Bytes(), file), "bytes that are not the file", got.Len())
	testkit.Holds(t, summary.Download < int64(20*time.Minute), "seconds", seconds(summary.Download))
}

// Two slow links do not take what the reader needs from each other for ever.
func TestBothLinksAreSlow(t *testing.T) {
	readInOrder(t, content, func(o *Options, n *simNet) {
		for i := range o.Links {
			o.Links[i].Dial = n.dial(simLink{rate: 480e3, rtt: 30 * time.Millisecond})
		}
	})
}

// A slow link is left what it has nearly brought, though a reader waits for it: of a record of TLS nothing can be read
// until all of it has come. What is taken over all the same comes twice.
func TestASlowLinkIsLeftWhatItHasNearlyBrought(t *testing.T) {
	drop := newCable()
	_, events := streamed(t, content, func(r io.Reader) { io.Copy(io.Discard, r) }, func(o *Options, n *simNet) {
		o.Scheduler, o.Connections = schedule.Adaptive{}, &transfer.Connections{Most: 1}
		o.Links[0].Dial = n.dial(simLink{rate: 4e6, rtt: 60 * time.Millisecond, cable: drop})
		o.Links[1].Dial = n.dial(simLink{rate: 2e6, rtt: 120 * time.Millisecond})
		time.AfterFunc(2*time.Second, func() { drop.set(0.078) })
	})
	slows := 0
	for _, f := range of[*rundir.Failover](events) {
		if f.Reason == slow {
			slows++
		}
	}
	testkit.Holds(t, slows <= 8, "requests that were taken over", slows) // 11 by the bytes alone that could be read.
}

// A connection takes over the byte that a reader waits for, with all behind it, from a link that is silent or has no
// carrier, however young the request is. It leaves a request that has no bytes left, or others than this one.
func TestTheNextByteIsTakenFromASilentLink(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 134))
		window, part := reorder.NewWindow(1000), ranges.Range{Length: 1000}
		_, err := window.Begin(transport.Resource{Size: 1000}, part)
		testkit.OK(t, err)
		c, other := someLink(0).first(), someLink(1).first()
		other.suspect, other.link.down = random.IntN(2) == 0, random.IntN(2) == 0
		r := &request{session: &session{Conn: &transport.Conn{}}, cancel: func() {}}
		r.Offset = max(0, quantity.Bytes(random.IntN(300)-200))
		r.Length = 100 + quantity.Bytes(random.IntN(700))
		r.limit = r.Offset + min(r.Length, 100+quantity.Bytes(random.IntN(700)))
		r.received = min(r.wanted(), quantity.Bytes(random.IntN(900)))
		if random.IntN(4) == 0 {
			r.duplicate = new(request)
		}
		now := time.Duration(1 + random.Int64N(int64(3*time.Second)))
		r.issued = time.Duration(random.Int64N(int64(now)))
		other.active = []*request{r}
		d := newDownload(Options{})
		d.connections, d.window, d.payload = []*connection{c, other}, window, ranges.NewPayload(part)
		want, isStalled := ranges.Range{}, other.suspect || other.link.down
		if left := r.left(); isStalled && r.Offset == 0 && left > 0 && r.duplicate == nil {
			want = ranges.Range{Offset: r.next(), Length: left}
		}
		testkit.Same(t, d.urgent(c, now).Range, want, "the request, its age, and whether it is stalled", r.Range, now-r.issued, isStalled)
	}
}

// drawing draws numbers from 0 to below n, for handlers that run at the same time.
func drawing(seed, stream uint64) func(n int) int {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, stream))
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
}

// Whatever the server answers, a reader gets the file or an error, with few requests.
func TestRandomAnswers(t *testing.T) {
	for seed := range racedetector.Part(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			draw := drawing(seed, 5)
			handler := ranged(func(w http.ResponseWriter, r *http.Request) {
				if draw(5) == 0 {
					r.Header.Del("Range")
				}
				if draw(5) < 2 {
					content(w, r)
					return
				}
				misbehave(w, r, draw)
			})
			readInOrder(t, handler, func(o *Options, n *simNet) {
				n.server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: []int{1, 2, 3, 10, 100}[seed%5]}
			})
		})
	}
}
