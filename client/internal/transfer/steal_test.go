package transfer

import (
	"math"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/tests/testkit"
)

// The end of a request is what its connection needs, and what else it has to wait for.
func TestWhenARequestEnds(t *testing.T) {
	const rtt = 100 * time.Millisecond
	known := schedule.Work{Rate: 8e6, Left: 500_000, RTT: rtt}        // 1 MB/s
	fresh := schedule.Work{Left: 10 * schedule.SegmentSize, RTT: rtt} // the first window of slow start
	for name, test := range map[string]struct {
		owed Owed
		want float64
	}{
		"by its rate":                         {Owed{Work: known, Comes: true}, 0.5},
		"and a trip for the confirmation":     {Owed{Work: known, Comes: true, Trip: rtt}, 0.6},
		"not before a lost packet is there":   {Owed{Work: known, Comes: true, Least: time.Second}, 1},
		"never, if nothing comes":             {Owed{Work: known, Least: time.Second}, math.Inf(1)},
		"never, without a rate":               {Owed{Work: fresh, Comes: true}, math.Inf(1)},
		"by slow start, without a rate":       {Owed{Work: fresh, Left: 10 * schedule.SegmentSize, Comes: true, IsFirst: true}, 0.2},
		"of which a part is over":             {Owed{Work: fresh, Left: 10 * schedule.SegmentSize, Comes: true, IsFirst: true, Age: rtt / 2}, 0.15},
		"by the later of slow start and rate": {Owed{Work: known, Left: 10 * schedule.SegmentSize, Comes: true, IsFirst: true}, 0.5},
	} {
		if got := test.owed.End(); got != test.want && math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: it ends in %v s, want %v", name, got, test.want)
		}
	}
}

// A free connection takes from the one that ends last, and there from the largest request.
func TestTheLargestRequestOfTheLatestIsTakenFrom(t *testing.T) {
	free := schedule.Work{Usable: true, Rate: 8e6}
	soon, late := free, free
	soon.Left, late.Left = 200_000, 2_000_000
	works := []schedule.Work{free, soon, late}
	var victims Victims[string]
	victims.Reset(len(works))
	victims.Offer(1, "soon", 200_000)
	victims.Offer(2, "small", 400_000)
	victims.Offer(2, "large", 1_600_000)
	victims.Offer(2, "on its way", -5)
	if request, y, bytes := victims.Choose(0, works); request != "large" || y != 2 || bytes != 1_000_000 {
		t.Errorf("%d bytes are taken over of %q of %d, want half of what the latest has", int64(bytes), request, y)
	}
	victims.Reset(len(works))
	if request, _, bytes := victims.Choose(0, works); request != "" || bytes != 0 {
		t.Errorf("%d bytes are taken over of %q after all requests were removed", int64(bytes), request)
	}
}

// The latest request is duplicated, if that brings it sooner.
func TestTheLatestRequestIsDuplicated(t *testing.T) {
	free := schedule.Work{Usable: true, Rate: 8e6} // 1 MB/s
	for name, test := range map[string]struct {
		left quantity.Bytes
		end  float64
		want bool
	}{
		"sooner":       {100_000, 0.2, true},
		"no sooner":    {190_000, 0.2, false},
		"it never may": {190_000, math.Inf(1), true},
	} {
		var latest Latest[string]
		testkit.Holds(t, !latest.IsWorth(free), "nothing is worth a duplicate")
		latest.Offer("early", 1000, 0.1)
		latest.Offer("late", test.left, test.end)
		latest.Offer("as late", 1000, test.end)
		if got := latest.IsWorth(free); latest.Request != "late" || got != test.want {
			t.Errorf("%s: %q is chosen, and worth it: %v", name, latest.Request, got)
		}
	}
	if got := MostDuplicate(8e6); got != 250_000 {
		t.Errorf("%d bytes may come twice, want what comes in 250 ms", int64(got))
	}
}
