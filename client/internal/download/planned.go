package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/schedule"
)

// planned lets a plan choose the links that are used. All links are used while none that the plan
// chose works.
type planned struct {
	planView
	d      *download
	waiter schedule.Waiter
	// overruledUntil is until when all links are used.
	overruledUntil time.Duration
}

// overruling is for how long all links are used after none of the plan's links worked. It avoids
// connecting the others again for each short failure.
const overruling = 2 * time.Second

func newPlanned(d *download, plan schedule.Plan) *planned {
	p := &planned{d: d, planView: newPlanView(plan)}
	p.waiter, _ = plan.(schedule.Waiter)
	for _, l := range d.links {
		p.add(&l.commonLink, &l.first().commonConnection)
		l.shortQueue = p.opens
	}
	p.choose(0)
	return p
}

// look lets the plan choose again, and gives idle links work.
func (p *planned) look(now time.Duration) {
	if p.d.isOver || p.d.race != nil {
		return
	}
	p.choose(now)
	p.disconnect()
	p.d.assign()
}

// disconnect closes the idle connections of spared links. With each keep-alive an open one would
// wake the link's radio.
func (p *planned) disconnect() {
	for _, c := range p.d.connections {
		if s := c.session; c.link.spared && s != nil && s.active == 0 && c.asking == nil {
			c.session = nil
			p.d.close(c, s, false)
		}
	}
}

// choose asks the plan which links it uses.
func (p *planned) choose(now time.Duration) {
	p.observe(&p.d.task, now, func(x int, progress *schedule.Progress) {
		c := p.d.connections[x]
		progress.Usable = c.alive() && !c.link.down
	})
	p.plan.Use(&p.scene, p.use)
	if p.waiter != nil {
		p.d.waits = p.waiter.Waits(&p.scene)
	}
	works := slices.ContainsFunc(p.d.connections, func(c *connection) bool {
		return p.use[c.index] && !p.isTroubled(c, now)
	})
	if !works {
		p.overruledUntil = now + overruling
	}
	for x, c := range p.d.connections {
		spared := now >= p.overruledUntil && !p.use[x]
		if c.link.spared != spared {
			c.link.spared = spared
			c.wake()
		}
		p.scene.Links[x].Spared = spared
	}
}

// isTroubled reports whether the link does not work. A link that is being connected for the first
// time works.
func (p *planned) isTroubled(c *connection, now time.Duration) bool {
	return c.out != nil || c.link.refused != nil || c.link.down || c.suspect || now < c.notBefore || c.failures > 0 && !c.alive()
}

// next is the link's next request; none if the plan does not use it.
func (p *planned) next(c *connection, now time.Duration) (next order) {
	if p.choose(now); c.link.spared {
		return order{}
	}
	next = p.d.choose(c, now)
	p.begins(c.index, next, now)
	return next
}
