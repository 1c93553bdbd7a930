package download

import (
	"net/http"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
)

// A link that a plan does not use is not connected.
func TestASparedLinkIsNotConnected(t *testing.T) {
	for _, name := range []string{"booster", "emptcp-http"} {
		summary, _, links := counted(t, http.HandlerFunc(content), func(o *Options, _ *network) { o.Scheduler = schedulers[name] })
		if links["lte"].made != 0 || summary.Links["lte"].Bytes != 0 || summary.Links["wifi"].Bytes == 0 {
			t.Errorf("%s: %+v, %+v", name, links, summary.Links)
		}
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

// A link that is spared completes what it was asked for, is disconnected, and
// is connected again when it is used again.
func TestASparedLinkIsDisconnected(t *testing.T) {
	_, events, links := counted(t, http.HandlerFunc(content), func(o *Options, _ *network) { o.Scheduler, o.Rescue = phases{}, nil })
	if links["lte"].made != 2 || links["wifi"].made != 1 {
		t.Errorf("connections are %+v", links)
	}
	for _, r := range of[*rundir.Request](events) {
		if at := time.Duration(r.T); r.Link == "lte" && at > 160*time.Millisecond && at < 350*time.Millisecond {
			t.Errorf("LTE is asked for bytes at %v", at)
		}
	}
	for _, e := range of[*rundir.End](events) {
		if e.Outcome != rundir.Complete {
			t.Errorf("a request is %s", e.Outcome)
		}
	}
}

// GreenBag recovers what a link that has become slow holds up: that link loses
// its connection, and both bring the rest.
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
			o.Rescue = nil
			time.AfterFunc(250*time.Millisecond, func() { n.wifi.set(0.02) })
		})
		failovers := of[*rundir.Failover](events)
		if recovered != (len(failovers) > 0) || recovered != (links["wifi"].made > 1) {
			t.Errorf("%s: %d failovers, connections are %+v", name, len(failovers), links)
		}
		if took := seconds(summary.Download); recovered != (took < 3) {
			t.Errorf("%s takes %g s", name, took)
		}
	}
}

// As thesis 8.2.4 has it, a slow link is used no more, not even when it is
// fast again.
func TestASlowLinkIsForsaken(t *testing.T) {
	_, events, _ := counted(t, http.HandlerFunc(content), func(o *Options, n *network) {
		o.Scheduler, o.Rescue = schedulers["alg3-dynamic"], nil
		o.Links[0].Dial, o.Links[1].Dial = n.dial(simLink{rate: 8e6, rtt: wifi.rtt, cable: n.wifi}), n.dial(simLink{rate: 4e6, rtt: lte.rtt, cable: n.lte})
		time.AfterFunc(1500*time.Millisecond, func() { n.lte.set(0.05) })
		time.AfterFunc(3*time.Second, func() { n.lte.set(1) })
	})
	failovers := of[*rundir.Failover](events)
	if len(failovers) == 0 || failovers[0].Link != "lte" || failovers[0].Reason != slow {
		t.Fatalf("failovers are %+v", failovers)
	}
	for _, r := range of[*rundir.Request](events) {
		if r.Link == "lte" && r.T > failovers[0].T {
			t.Errorf("LTE is asked for bytes at %v", time.Duration(r.T))
		}
	}
}
