package download

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// A link that a plan does not use is not connected.
func TestASparedLinkIsNotConnected(t *testing.T) {
	for _, name := range []string{"booster", "emptcp-http"} {
		summary, _, links := counted(t, http.HandlerFunc(content), func(o *Options, _ *network) { o.Scheduler, o.Rescue = schedulers[name], false })
		testkit.Holds(t, links["lte"].made == 0 && summary.Links["lte"].Bytes == 0 && summary.Links["wifi"].Bytes != 0, name, links, summary.Links)
	}
}

// Some algorithms learn the size with the first bytes: slow start waits for nothing. A request for the whole file
// brings them, and in the engine of published algorithms that of the scheduler's first size.
func TestTheFirstBytesTellTheSize(t *testing.T) {
	var heads atomic.Int32
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			heads.Add(1)
		}
		content(w, r)
	}
	for name, expected := range map[string]int32{"adaptive": 0, "adaptive-energy": 0, "emptcp-http": 0, "booster": 1} {
		heads.Store(0)
		_, events, _ := counted(t, http.HandlerFunc(handler), func(o *Options, _ *network) { o.Scheduler, o.Rescue = schedulers[name], rescuers[name] != nil })
		testkit.Same(t, heads.Load(), expected, "HEADs", name)
		first, size := of[*rundir.Request](events)[0], int64(len(file))
		if name == "emptcp-http" {
			size = min(size, int64(schedulers[name].(schedule.EMPTCP).Sizes.FirstRequests))
		}
		testkit.Holds(t, first.Offset == 0 && (expected != 0 || first.Length == size), "the first request", name, first)
	}
}

// phases is a plan that uses both links, then Wi-Fi alone, then both again.
type phases struct{ schedule.Naive }

func (p phases) Plan() schedule.Plan { return p }

func (phases) Next(int, schedule.Known) quantity.Bytes { return 500_000 }

func (phases) Every() time.Duration { return 10 * time.Millisecond }

func (phases) Use(s *schedule.Scene, use []bool) {
	use[0], use[1] = true, s.Now < 150*time.Millisecond || s.Now > 350*time.Millisecond
}

// A link that is spared completes what it was asked for, is disconnected, and is connected again when it is used again.
func TestASparedLinkIsDisconnected(t *testing.T) {
	_, events, links := counted(t, http.HandlerFunc(content), func(o *Options, _ *network) { o.Scheduler, o.Rescue = phases{}, false })
	testkit.Holds(t, links["lte"].made == 2 && links["wifi"].made == 1, links)
	for _, c := range of[*rundir.Connected](events) {
		testkit.Holds(t, c.Link != "lte" || time.Duration(c.TCP) == lte.rtt, "a handshake takes a round trip", c)
	}
	for _, r := range of[*rundir.Request](events) {
		at := time.Duration(r.T)
		testkit.Holds(t, r.Link != "lte" || at <= 160*time.Millisecond || at >= 350*time.Millisecond, "LTE is asked for bytes", at)
	}
	for _, e := range of[*rundir.End](events) {
		testkit.Same(t, e.Outcome, rundir.Complete, "outcome of a request")
	}
}

// GreenBag recovers what a link that has become slow holds up: that link loses its connection, and both bring the rest.
func TestGreenBagRecoversWhatIsHeldUp(t *testing.T) {
	for name, recovered := range map[string]bool{"gb-p": true, "gb-no-recovery": false} {
		summary, events, links := counted(t, http.HandlerFunc(content), func(o *Options, n *network) {
			player := parameters
			player.Player = schedule.Player{Rate: 100e6, Buffer: 200_000}
			for _, a := range schedule.Algorithms {
				if a.Name == name {
					o.Scheduler = a.Scheduler(player)
				}
			}
			o.Rescue = false
			time.AfterFunc(250*time.Millisecond, func() { n.wifi.set(0.02) })
		})
		failovers := of[*rundir.Failover](events)
		testkit.Holds(t, recovered == (len(failovers) > 0) && recovered == (links["wifi"].made > 1), "failovers, and connections", name, len(failovers), links)
		testkit.Same(t, seconds(summary.Download) < 3, recovered, name)
	}
}

// Without rescue a link that cannot be connected again ends the download, also when all that is left is the part of a
// segment that it was to get: nobody else brings that, and the silence would last until the download gives up.
func TestAPartOfALinkThatIsGoneIsMissed(t *testing.T) {
	gone := errors.New("connection timed out")
	summary, events, err := try(t, http.HandlerFunc(content), func(o *Options, n *simNet) {
		a := wifi
		a.cable = newCable()
		dial := n.dial(a)
		o.Links[0].Dial = func(ctx context.Context, address string) (link.Socket, error) {
			if factor, _ := a.cable.now(); factor > 0 {
				return dial(ctx, address)
			}
			select { // As TCP does, which has LTE bring all of its own meanwhile.
			case <-time.After(time.Minute):
				return nil, gone
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		o.Scheduler, o.GiveUp = schedule.GreenBag{SegmentSize: 512_000, Halves: true}, 5*time.Minute
		time.AfterFunc(250*time.Millisecond, func() { a.cable.set(0) })
	})
	testkit.Holds(t, errors.Is(err, gone), "the error is not that of Wi-Fi", err, summary.Download)
	testkit.Holds(t, seconds(summary.Download) <= 90 && len(of[*rundir.Failover](events)) != 0, "failovers", of[*rundir.Failover](events))
}

// As thesis 8.2.4 has it, a slow link is used no more, not even when it is fast again.
func TestASlowLinkIsForsaken(t *testing.T) {
	_, events, _ := counted(t, http.HandlerFunc(content), func(o *Options, n *network) {
		o.Scheduler, o.Rescue = schedulers["alg3-dynamic"], false
		o.Links[0].Dial, o.Links[1].Dial = n.dial(simLink{rate: 8e6, rtt: wifi.rtt, cable: n.wifi}), n.dial(simLink{rate: 4e6, rtt: lte.rtt, cable: n.lte})
		time.AfterFunc(1500*time.Millisecond, func() { n.lte.set(0.05) })
		time.AfterFunc(3*time.Second, func() { n.lte.set(1) })
	})
	failovers := of[*rundir.Failover](events)
	if len(failovers) == 0 || failovers[0].Link != "lte" || failovers[0].Reason != slow {
		t.Fatalf("failovers are %+v", failovers)
	}
	for _, r := range of[*rundir.Request](events) {
		testkit.Holds(t, r.Link != "lte" || r.T <= failovers[0].T, "LTE is asked for bytes at", time.Duration(r.T))
	}
}

// Behind a lost packet nothing comes for a while, and then all at once: the
// wait is a part of the rate, and no sign of a link that has broken off.
func TestALostPacketDoesNotChangeARate(t *testing.T) {
	l := &publishedLink{commonLink: newCommonLink(0, transfer.Link{}, time.Second), commonConnection: newConnection(nil)}
	l.rtt.Min = 20 * time.Millisecond
	w := &goodput{}
	var now time.Duration
	arrive := func(r *request, bytes quantity.Bytes) {
		l.Meter.Add(now, bytes)
		r.received += bytes
		w.follow(l, r, now)
	}
	at := func(milliseconds time.Duration) { now = milliseconds * time.Millisecond }
	ask := func(bytes quantity.Bytes) *request {
		l.newest = &request{Range: ranges.Range{Length: bytes}, limit: bytes, issued: now}
		return l.newest
	}
	whole := func(name string, want float64) {
		t.Helper()
		within(t, name, float64(w.rate(now, l.Meter.Total()))/8, 0.98*want, 1.02*want)
	}
	// A million bytes a second; the next request is always on its way.
	first := ask(1e6 + 1000)
	at(50)
	arrive(first, 1000)
	at(1000)
	second := ask(400e3)
	at(1050)
	arrive(first, 1e6)
	whole("a steady link", 1e6)
	at(1200)
	whole("a link that is silent for 150 ms", 1e6)
	third := ask(100e3)
	at(1480)
	arrive(second, 400e3)
	whole("what came at once", 930e3)
	arrive(third, 50e3)
	fourth := ask(300e3)
	at(1510)
	arrive(third, 50e3)
	whole("a small one, mostly in the burst", 930e3)
	at(1830)
	arrive(fourth, 300e3)
	whole("with the next one", 1143e3)
	testkit.Same(t, w.finished, 3, "measured requests")
	at(2400)
	ask(300e3)
	w.follow(l, l.newest, now)
	at(2900)
	whole("a link that has broken off", 0)
}

// A plan takes no bytes from a link whose requests are all too new for an answer. It may from one that brings
// bytes, or that has had its time.
func TestALinkIsAwaitedUntilItAnswersOrIsLate(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 346))
		v := &division{p: new(published)}
		for range 1 + random.IntN(3) {
			l := &publishedLink{}
			l.rtt.Min = time.Duration(random.Int64N(int64(time.Second)))
			l.rtt.Last = l.rtt.Min
			v.p.links = append(v.p.links, l)
		}
		slowest := slices.MaxFunc(v.p.links, func(a, b *publishedLink) int { return int(a.delay() - b.delay()) })
		patience := max(schedule.PaceWindow, 2*slowest.delay())
		l, now := v.p.links[0], time.Minute
		isYoung, brings := random.IntN(2) == 0, random.IntN(2) == 0
		for range random.IntN(4) {
			age := time.Duration(random.Int64N(int64(patience)))
			if !isYoung {
				age += patience
			}
			l.active = append(l.active, &request{issued: now - age})
		}
		if len(l.active) > 0 && brings {
			l.active[random.IntN(len(l.active))].received = 1 + quantity.Bytes(random.Int64N(1e6))
		}
		want := len(l.active) > 0 && isYoung && !brings
		testkit.Same(t, v.isAwaited(l, now), want, "requests, patience, they are young, and bring bytes", len(l.active), patience, isYoung, brings)
	}
}
