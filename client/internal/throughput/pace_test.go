package throughput

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestPaceIgnoresTimesWithoutWork(t *testing.T) {
	const ms = time.Millisecond
	p := NewPace(500 * ms)
	testkit.Same(t, p.Rate(0), 0)
	// 1 MB/s over 200 ms of work, which begins after a round trip.
	p.Begin(0, 50*ms)
	for now := 60 * ms; now <= 250*ms; now += 10 * ms {
		p.Add(now, 10_000)
	}
	check := func(now time.Duration, want quantity.Rate) {
		t.Helper()
		if got := p.Rate(now); got < 0.99*want || got > 1.01*want {
			t.Errorf("the rate at %v is %v, want %v", now, got, want)
		}
	}
	check(250*ms, 8e6)
	p.End(250 * ms)
	check(10_000*ms, 8e6)

	// Work without bytes lowers the rate.
	p.Begin(10_000*ms, 50*ms)
	check(10_050*ms, 8e6)
	check(10_250*ms, 4e6)
	check(10_600*ms, 0)

	// Bytes that arrive earlier than expected count from then on.
	p.End(10_600 * ms)
	p.Begin(11_000*ms, 50*ms)
	p.Add(11_010*ms, 1000)
	if got := p.Rate(11_010 * ms); got <= 0 {
		t.Errorf("the rate is %v after bytes came early", got)
	}
}

// Over a longer window a pause counts less.
func TestThePaceOverAnotherWindow(t *testing.T) {
	p := NewPace(500 * time.Millisecond)
	p.Begin(0, 0)
	p.Add(500*time.Millisecond, 1_000_000)
	if rate := p.Rate(1100 * time.Millisecond); rate != 0 {
		t.Errorf("it is %.0f bit/s after a pause of 600 ms", float64(rate))
	}
	p.Average(2 * time.Second)
	p.Add(1100*time.Millisecond, 1_000_000)
	if rate := p.Rate(1600 * time.Millisecond); rate < 4e6 || rate > 6e6 {
		t.Errorf("it is %.0f bit/s", float64(rate))
	}
}
