package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// withConnections is the engine with Rescue and Connections.
type withConnections struct {
	withRescue
	most int
}

func (p withConnections) eager() bool { return p.d.asker.isNew() }

// next is as with Rescue, but a connection gets a share of what its link gets. Where nothing
// is left, it may repeat what another one owes.
func (p withConnections) next(c *connection, now time.Duration) (r ranges.Range, from string, ok bool) {
	if !c.usable(now) || c.leaving {
		return r, "", false
	}
	before := p.d.requests
	if r, from, ok = p.d.thief.urgent(c, now); ok || p.d.requests > before {
		return r, from, ok
	}
	each := p.d.estimates.measured(now)
	works := p.d.estimates.merged(each, now)
	free := p.d.payload.Free(p.d.limit())
	if free == 0 {
		if r, from, ok = p.d.thief.steal(c, works, now); !ok && p.d.requests == before {
			r, from, ok = p.d.thief.balance(c, each, now)
		}
		if !ok && p.d.requests == before && p.d.payload.Free(p.d.part.End()) == 0 {
			p.d.hedger.repeat(c, works, now)
		}
		return r, from, ok
	}
	link := works[c.link.index]
	size := max(p.d.nextSize(c, now), c.pipe(now))
	if c.link.takesLong {
		size = free
	}
	size = min(size, schedule.ConnectionShare(each[c.index], link, schedule.Share(c.link.index, works, free)))
	if c.onTrial() {
		size = min(size, trial)
	}
	if size < schedule.MinimumRequest {
		if len(c.active) > 0 || !schedule.Largest(c.link.index, works, free) {
			return r, "", false
		}
		size = schedule.MinimumRequest
	}
	r, ok = p.d.payload.Take(size, p.d.limit())
	return r, "", ok
}

// start races the connections that a link begins with.
func (p withConnections) start() {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	for _, l := range p.d.links {
		l.Growth = &schedule.Growth{Most: p.most}
		l.Together = throughput.NewPace(transfer.PaceWindow)
		l.little = p.d.window != nil
		for range l.Growth.Begin() - 1 {
			p.add(l)
		}
	}
}

// tend makes each link have as many connections as it should.
func (p withConnections) tend(now time.Duration) {
	if p.d.payload == nil {
		return
	}
	for _, l := range p.d.links {
		p.tendLink(l, now)
	}
}

func (p withConnections) tendLink(l *linkState, now time.Duration) {
	flow := schedule.Flow{Total: l.Meter.Total(), Busy: p.d.payload.Free(p.d.limit()) > 0}
	hears := slices.ContainsFunc(l.connections, func(c *connection) bool { return c.hears(now) })
	for _, c := range l.connections {
		switch {
		case c.isFirst():
		case c.suspect:
			if hears {
				l.Growth.Lost()
			}
			p.d.keeper.remove(c, now)
			continue
		case c.leaving && len(c.active) == 0:
			p.d.keeper.remove(c, now)
			continue
		}
		if c.session != nil && c.pace.Total() > 0 {
			c.measure()
			if came := c.session.hole.look(c.session.Received(), c.rtt.OutOfOrder, now, c.rtt.Last); came > 0 {
				c.delivered(came, now)
			}
			// It was chosen before what is behind a lost packet counted as it comes.
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
	// While a reader pauses, who is idle is closed by the server, again and again; and
	// a link that is silent would only silence them, too.
	for len(l.connections) < count && (hears || begins) && (flow.Busy || p.d.window == nil) {
		p.add(l)
	}
	for _, c := range l.surplus(count, now) {
		c.leaving = true
	}
}

// add gives the link another connection.
func (p withConnections) add(l *linkState) {
	c := l.newConnection()
	c.index = len(p.d.connections)
	p.d.connections = append(slices.Clone(p.d.connections), c)
	p.d.wg.Go(func() {
		err := p.d.connector.connect(p.d.ctx, c)
		p.d.mu.Lock()
		defer p.d.mu.Unlock()
		if c.session != nil || c.out != nil {
			return
		}
		if err != nil && !link.IsCrowded(err) {
			l.Growth.Lost()
		}
		p.d.keeper.remove(c, time.Since(p.d.start))
	})
}
