package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// grower adds connections to links, and removes them.
type grower struct{ d *download }

// start adds the connections with which a link begins.
func (g *grower) start() {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	for _, l := range g.d.links {
		l.Growth = &schedule.Growth{Most: g.d.Connections.Most}
		l.Together = throughput.NewPace(transfer.PaceWindow)
		l.shortQueue = g.d.window != nil
		for range l.Growth.Begin() - 1 {
			g.add(l)
		}
	}
}

// maintain makes each link have the right number of connections.
func (g *grower) maintain(now time.Duration) {
	if g.d.payload == nil || g.d.Connections == nil {
		return
	}
	for _, l := range g.d.links {
		g.maintainLink(l, now)
	}
}

func (g *grower) maintainLink(l *linkState, now time.Duration) {
	flow := schedule.Flow{Total: l.Meter.Total(), Busy: g.d.payload.Free(g.d.limit()) > 0}
	hears := slices.ContainsFunc(l.connections, func(c *connection) bool { return c.hears(now) })
	for _, c := range l.connections {
		switch {
		case c.isFirst():
		case c.suspect && c.session != nil && g.d.fetcher.hasOnly(c, c.session):
			g.d.closer.clear(c, c.session, lost, now)
		case c.suspect:
			if hears {
				l.Growth.Lost()
			}
			g.d.closer.remove(c, now)
			continue
		case c.leaving && len(c.active) == 0:
			g.d.closer.remove(c, now)
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
	for len(l.connections) < count && (hears || begins) && (flow.Busy || g.d.window == nil) {
		g.add(l)
	}
	for _, c := range l.surplus(count, now) {
		c.leaving = true
	}
}

// add adds a connection to the link.
func (g *grower) add(l *linkState) {
	c := l.newConnection()
	c.index = len(g.d.connections)
	g.d.connections = append(slices.Clone(g.d.connections), c)
	g.d.wg.Go(func() {
		err := g.d.connector.connect(g.d.ctx, c)
		g.d.mu.Lock()
		defer g.d.mu.Unlock()
		if c.session != nil || c.out != nil {
			return
		}
		if err != nil && !link.IsCrowded(err) {
			l.Growth.Lost()
		}
		g.d.closer.remove(c, time.Since(g.d.start))
	})
}
