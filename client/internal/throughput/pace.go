package throughput

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Pace measures the throughput of a link while it has work. Unlike a Meter it keeps the throughput
// while the link is idle.
type Pace struct {
	meter *Meter
	busy  bool
	// since is the earliest time at which bytes of the present work could arrive. worked is
	// the length of all earlier work.
	since, worked time.Duration
}

// NewPace returns a Pace that averages over a window of work.
func NewPace(window time.Duration) *Pace {
	p := &Pace{meter: NewMeter(window)}
	p.meter.Start(0)
	return p
}

// Average changes the window. Bytes outside the old window stay forgotten.
func (p *Pace) Average(window time.Duration) { p.meter.window = window }

// Begin tells that the link got work at now, and that its first byte needs at least delay. If the
// link has work already, nothing changes.
func (p *Pace) Begin(now, delay time.Duration) {
	if !p.busy {
		p.busy, p.since = true, now+delay
	}
}

// End tells that the link has no more work.
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

// Rate returns the mean throughput over the last window of work, 0 if nothing arrived in it.
func (p *Pace) Rate(now time.Duration) quantity.Rate { return p.meter.Rate(p.clock(now)) }

// Total returns the number of bytes that have arrived.
func (p *Pace) Total() quantity.Bytes { return p.meter.Total() }

// clock returns the time spent on work.
func (p *Pace) clock(now time.Duration) time.Duration {
	if !p.busy {
		return p.worked
	}
	return p.worked + max(0, now-p.since)
}
