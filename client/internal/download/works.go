package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// measured returns the outstanding work of each connection, with its measured rate.
func (d *download) measured(now time.Duration) []schedule.Work {
	works := transfer.Cleared(&d.worksMemory, len(d.connections))
	for x, c := range d.connections {
		w := &works[x]
		*w = schedule.Work{
			Usable:    c.usable(now) || c.interrupted(now),
			Left:      c.expected,
			Delay:     c.idle(),
			RTT:       c.rtt.Min,
			Arrived:   c.pace.Total(),
			Bandwidth: c.link.Bandwidth,
		}
		if c.session == nil || c.suspect {
			continue
		}
		w.Left += max(0, c.session.stale-c.session.Unread())
		for _, r := range c.active {
			// The server may send one answer after the other.
			w.Left += w.Tail
			w.Tail = c.tail(r, now)
		}
		w.Rate = c.pace.Rate(now)
		if d.window != nil && len(c.active) == 0 && now-c.session.lateAt > firstSilence {
			w.Rate = 0 // A rate of long ago must not keep work from the connection for ever.
		}
		if kept := c.session.hole.kept; kept > 0 {
			w.Left = max(min(w.Left, schedule.SegmentSize), w.Left-kept)
		}
	}
	return works
}

// merged sums the outstanding work of each link's connections.
func (d *download) merged(each []schedule.Work, now time.Duration) []schedule.Work {
	works := d.mergeMemory[:0]
	for x, c := range d.connections {
		if c.isFirst() {
			works = append(works, each[x])
		} else {
			works[c.link.index].Join(each[x])
		}
		if each[x].Usable {
			works[c.link.index].Connections++
		}
	}
	for _, c := range d.connections {
		// The idle connections' share of the bandwidth is already counted for the busy ones.
		if l := c.link; len(c.active) == 0 && c.pace.Total() > 0 && l.isBusy() {
			works[l.index].Rate = min(works[l.index].Rate, l.Together.Rate(now))
		}
	}
	d.mergeMemory = works
	transfer.GuessRates(works, func(x int) (isFresh bool, bandwidth, shown quantity.Rate) {
		l := d.links[x]
		return l.isFresh(), l.Bandwidth, l.Shown.Rate()
	})
	return works
}

// works is as measured, with a guess for each rate that is not known.
func (d *download) works(now time.Duration) []schedule.Work {
	works := d.measured(now)
	transfer.GuessRates(works, func(x int) (isFresh bool, bandwidth, shown quantity.Rate) {
		c := d.connections[x]
		if c.isFirst() {
			shown = c.link.Shown.Rate()
		}
		return c.isFresh(), c.link.Bandwidth, shown
	})
	return works
}

// exceptLate makes the works of other links unusable whose server is late: these take no free bytes before it answers.
func (d *download) exceptLate(of *linkState, works []schedule.Work) []schedule.Work {
	for _, l := range d.links {
		if l != of && l.isLate() {
			works[l.index].Usable = false
		}
	}
	return works
}

// isFresh reports whether the connection brings nothing by which the client could know its rate.
func (c *connection) isFresh() bool { return len(c.active) == 0 || c.pace.Total() == 0 }
