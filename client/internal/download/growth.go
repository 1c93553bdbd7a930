package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

func (d *download) startGrowth() {
	for _, l := range d.links {
		l.Growth = &schedule.Growth{Most: d.Connections.Most}
		l.shortQueue = d.window != nil
		for range l.Growth.Begin() - 1 {
			d.add(l)
		}
	}
}

func (d *download) maintain(now time.Duration) {
	if d.payload == nil || d.Connections == nil || d.isOver {
		return
	}
	for _, l := range d.links {
		d.maintainLink(l, now)
	}
}

func (d *download) maintainLink(l *linkState, now time.Duration) {
	flow := schedule.Flow{Total: l.Meter.Total(), Busy: d.payload.Free(d.limit()) > 0}
	hears := slices.ContainsFunc(l.connections, func(c *connection) bool { return c.hears(now) })
	for _, c := range l.connections {
		switch {
		case c.isFirst():
		case c.suspect && c.session != nil && d.hasOnly(c, c.session):
			d.clear(c, c.session, lost, now)
		case c.suspect:
			if hears {
				l.Growth.Lost()
			}
			d.remove(c, now)
			continue
		case c.leaving && len(c.active) == 0:
			d.remove(c, now)
			continue
		}
		if c.session != nil && c.pace.Total() > 0 {
			c.measure()
			if came := c.session.hole.look(c.session.Received(), c.rtt.OutOfOrder, now, c.rtt.Last); came > 0 {
				c.delivered(came, now)
			}
			// The averaging time was chosen before bytes behind a lost packet were counted.
			c.pace.Average(transfer.Averaged(c.rtt.Last))
			flow.Add(c.rtt.Last, c.rtt.Min, c.pace.Rate(now), c.isFirst())
		}
	}
	first := l.first()
	l.Together.Average(transfer.Averaged(first.rtt.Last))
	usable := first.usable(now)
	if !usable && l.away == 0 && first.session != nil {
		l.away, l.answers, l.isBack = now, false, false
	}
	begins := (usable || l.answers) && l.away > 0 && !l.isBack && now-l.away > transfer.LeastSilence
	if begins {
		l.Growth.Back(len(l.connections)-1, l.answers)
		l.isBack = true
	}
	switch {
	case usable:
		l.away = 0
	case !begins:
		return
	}
	count := l.Growth.Count(now, flow)
	// While the reader pauses, the server would close idle connections again and again. On a
	// silent link new connections would be silent, too.
	for len(l.connections) < count && (hears || begins) && (flow.Busy || d.window == nil) {
		d.add(l)
	}
	for _, c := range l.surplus(count, now) {
		c.leaving = true
	}
}

func (d *download) add(l *linkState) {
	c := l.newConnection()
	c.index = len(d.connections)
	d.connections = append(slices.Clone(d.connections), c)
	d.dial(c)
}

// notAdded removes a further connection that got no session from its attempt.
func (d *download) notAdded(c *connection, err error) {
	if c.session != nil || c.out != nil {
		return
	}
	if err != nil && !link.IsCrowded(err) {
		c.link.Growth.Lost()
	}
	d.remove(c, d.now)
}
