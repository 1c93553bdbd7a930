package throughput

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Pace measures what a link delivers while it has work to do. Unlike a Meter
// it remembers the throughput over times without work.
type Pace struct {
	meter *Meter
	busy  bool
	// since is when the present work began to be delivered at the earliest,
	// and worked the length of all work before.
	since, worked time.Duration
}

// NewPace returns a pace that averages over a window of work.
func NewPace(window time.Duration) *Pace {
	p := &Pace{meter: NewMeter(window)}
	p.meter.Start(0)
	return p
}

// Average changes the window. What is forgotten already does not come back.
func (p *Pace) Average(window time.Duration) { p.meter.window = window }

// Begin says that the link got work at now, of which nothing can arrive
// before delay has passed. If it has some already, nothing changes.
func (p *Pace) Begin(now, delay time.Duration) {
	if !p.busy {
		p.busy, p.since = true, now+delay
	}
}

// End says that the link has no more work.
func (p *Pace) End(now time.Duration) {
	p.worked, p.busy = p.clock(now), false
}

// Add counts bytes that arrived at now.
func (p *Pace) Add(now time.Duration, bytes quantity.Bytes) {
	if p.busy && now < p.since {
		p.since = now
	}
	p.meter.Add(p.clock(now), bytes)
}

// Rate is the mean throughput over the last window of work, 0 if
// nothing has arrived in it.
func (p *Pace) Rate(now time.Duration) quantity.Rate { return p.meter.Rate(p.clock(now)) }

// Total is the number of bytes that arrived.
func (p *Pace) Total() quantity.Bytes { return p.meter.Total() }

// clock is the time that was spent on work.
func (p *Pace) clock(now time.Duration) time.Duration {
	if !p.busy {
		return p.worked
	}
	return p.worked + max(0, now-p.since)
}
