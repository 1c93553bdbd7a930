package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// remove gives a further connection up. What it owed is free again. The connection of one
// that was only not needed is kept: an outage does it no harm, while TCP waits ever
// longer on those to which something was under way.
func (d *download) remove(c *connection, now time.Duration) {
	if c.out != nil {
		return
	}
	spared := c.leaving && c.session != nil && c.session.isIdle() && d.spare(c, c.session)
	c.out = transfer.ErrGone
	d.abandon(c, slices.Clone(c.active), lost, now)
	c.abandonAttempt()
	for len(c.completing) > 0 {
		d.giveUpOn(c, c.completing[0], lost, now)
	}
	if s := c.session; s != nil {
		c.session = nil
		if !spared {
			d.close(c, s, false)
		}
	}
	isIt := func(other *connection) bool { return other == c }
	d.connections = slices.DeleteFunc(slices.Clone(d.connections), isIt)
	c.link.connections = slices.DeleteFunc(slices.Clone(c.link.connections), isIt)
	for x, other := range d.connections {
		other.index = x
	}
}

// withConnections is the engine with Rescue and Connections.
type withConnections struct {
	withRescue
	most int
}

func (d withConnections) eager() bool { return d.isNew() }

// next is as with Rescue, but a connection gets a share of what its link gets. Where nothing
// is left, it may repeat what another one owes.
func (d withConnections) next(c *connection, now time.Duration) (r ranges.Range, from string, ok bool) {
	if !c.usable(now) || c.leaving {
		return r, "", false
	}
	before := d.requests
	if r, from, ok = d.urgent(c, now); ok || d.requests > before {
		return r, from, ok
	}
	each := d.measured(now)
	works := d.merged(each, now)
	free := d.payload.Free(d.limit())
	if free == 0 {
		if r, from, ok = d.steal(c, works, now); !ok && d.requests == before {
			r, from, ok = d.balance(c, each, now)
		}
		if !ok && d.requests == before && d.payload.Free(d.part.End()) == 0 {
			d.repeat(c, works, now)
		}
		return r, from, ok
	}
	link := works[c.link.index]
	size := max(d.nextSize(c, now), c.pipe(now))
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
	r, ok = d.payload.Take(size, d.limit())
	return r, "", ok
}

// merged sums the outstanding work of each link's connections.
func (d *download) merged(each []schedule.Work, now time.Duration) []schedule.Work {
	works := d.scratch.links[:0]
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
		if l := c.link; l.Together != nil && len(c.active) == 0 && c.pace.Total() > 0 && l.isBusy() {
			works[l.index].Rate = min(works[l.index].Rate, l.Together.Rate(now))
		}
	}
	d.scratch.links = works
	transfer.GuessRates(works, func(x int) (isFresh bool, bandwidth, shown quantity.Rate) {
		l := d.links[x]
		return l.isFresh(), l.Bandwidth, l.Shown.Rate()
	})
	return works
}

// begin races the connections that a link begins with.
func (d withConnections) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.links {
		l.Growth = &schedule.Growth{Most: d.most}
		l.Together = throughput.NewPace(transfer.PaceWindow)
		l.little = d.window != nil
		for range l.Growth.Begin() - 1 {
			d.add(l)
		}
	}
}

// isOpening reports whether the link's connection awaits its first answer.
func (d *download) isOpening(c *connection) bool { return d.policy.eager() && c.asking == c.session }

// tend makes each link have as many connections as it should.
func (d withConnections) tend(now time.Duration) {
	if d.payload == nil {
		return
	}
	for _, l := range d.links {
		d.tendLink(l, now)
	}
}

func (d withConnections) tendLink(l *linkState, now time.Duration) {
	flow := schedule.Flow{Total: l.Meter.Total(), Busy: d.payload.Free(d.limit()) > 0}
	hears := slices.ContainsFunc(l.connections, func(c *connection) bool { return c.hears(now) })
	for _, c := range l.connections {
		switch {
		case c.isFirst():
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
	for len(l.connections) < count && (hears || begins) && (flow.Busy || d.window == nil) {
		d.add(l)
	}
	for _, c := range l.surplus(count, now) {
		c.leaving = true
	}
}

// add gives the link another connection.
func (d withConnections) add(l *linkState) {
	c := l.newConnection()
	c.index = len(d.connections)
	d.connections = append(slices.Clone(d.connections), c)
	d.wg.Go(func() {
		err := d.connect(d.ctx, c)
		d.mu.Lock()
		defer d.mu.Unlock()
		if c.session != nil || c.out != nil {
			return
		}
		if err != nil && !link.IsCrowded(err) {
			l.Growth.Lost()
		}
		d.remove(c, time.Since(d.start))
	})
}
