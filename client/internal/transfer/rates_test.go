package transfer

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestWhatHasNoRateIsGivenAnEstimate(t *testing.T) {
	type estimate struct {
		isFresh          bool
		bandwidth, shown quantity.Rate
	}
	for name, test := range map[string]struct {
		of   estimate
		work schedule.Work
		want quantity.Rate
	}{
		"its bandwidth, if that is known":   {estimate{true, 5e6, 3e6}, schedule.Work{Usable: true}, 5e6},
		"what it has shown, if anything":    {estimate{true, 0, 3e6}, schedule.Work{Usable: true}, 3e6},
		"else half of the others' mean":     {estimate{true, 0, 0}, schedule.Work{Usable: true}, 4e6},
		"nothing if it has work, and is 0":  {estimate{false, 5e6, 3e6}, schedule.Work{Usable: true}, 0},
		"nothing if it cannot be used":      {estimate{true, 5e6, 3e6}, schedule.Work{}, 0},
		"what is measured is not estimated": {estimate{true, 5e6, 3e6}, schedule.Work{Usable: true, Rate: 1e6}, 1e6},
	} {
		works := []schedule.Work{{Usable: true, Rate: 6e6}, test.work, {Usable: true, Rate: 10e6}}
		GuessRates(works, func(int) (bool, quantity.Rate, quantity.Rate) {
			return test.of.isFresh, test.of.bandwidth, test.of.shown
		})
		if got := works[1].Rate; got != test.want {
			t.Errorf("%s: it is estimated at %.0f bit/s, want %.0f", name, float64(got), float64(test.want))
		}
	}
}

func TestTheBackoffDoublesUpToAMost(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		0: LeastBackoff, 1: LeastBackoff, 2: 2 * LeastBackoff, 5: 16 * LeastBackoff, 6: MostBackoff, 100: MostBackoff,
	} {
		testkit.Same(t, Backoff(failures), want, failures)
	}
}

// The silence that counts grows with the round trip, which has the queue in it.
func TestALinkWithALongQueueMayBeSilentForLonger(t *testing.T) {
	for _, test := range []struct {
		rtt, want time.Duration
	}{{10 * time.Millisecond, LeastSilence}, {time.Second, schedule.FewTrips * time.Second}} {
		testkit.Same(t, Silence(LeastSilence, test.rtt), test.want, test.rtt)
		testkit.Holds(t, !IsQuiet(max(LeastSilence/2, 2*test.rtt), test.rtt) && IsQuiet(test.want, test.rtt), test.rtt)
	}
}

func TestWhatIsOrderedAheadLastsForTheDelayAndThePause(t *testing.T) {
	const rate quantity.Rate = 8e6 // 1 MB/s
	if got := Ahead(rate, 100*time.Millisecond, 0); got != 125_000 {
		t.Errorf("%d bytes are ordered ahead, want 125000", int64(got))
	}
	if got := Ahead(rate, 100*time.Millisecond, 50*time.Millisecond); got != 175_000 {
		t.Errorf("%d bytes are ordered ahead with a pause, want 175000", int64(got))
	}
}

// What is behind a lost packet comes a round trip late, so an average has two round trips.
func TestAnAverageHasTwoRoundTripsAndHalfASecond(t *testing.T) {
	for rtt, want := range map[time.Duration]time.Duration{0: 500, 249: 500, 251: 502, 2000: 4000} {
		testkit.Same(t, Averaged(rtt*time.Millisecond), want*time.Millisecond, rtt)
	}
}
