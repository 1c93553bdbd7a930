package download

import (
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transport"
)

// planned lets a plan choose the links that are used. All links are used while none that the plan chose works.
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

// disconnect closes the idle connections of spared links. With each keep-alive an open one would wake the link's radio.
func (p *planned) disconnect() {
	for _, c := range p.d.connections {
		if s := c.session; c.link.spared && s != nil && s.active == 0 && c.asking == nil {
			c.session = nil
			p.d.close(c, s, false)
		}
	}
}

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
		c.link.spared = now >= p.overruledUntil && !p.use[x]
		p.scene.Links[x].Spared = c.link.spared
	}
}

// isTroubled reports whether the link does not work. A link that is being connected for the first time works.
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

// planView is what a plan sees of the links, and which of them it uses.
type planView struct {
	plan schedule.Plan
	// opens says that the first request is for bytes.
	opens bool
	scene schedule.Scene
	// use says which links the plan uses, and seen is what it sees of each.
	use  []bool
	seen []seenLink
}

// seenLink is a link with its connection, and what the network brought for it, TLS included. The kernel knows that: bodies
// arrive a record of TLS at a time, which is seldom on a slow link, and not at all behind a lost packet.
type seenLink struct {
	*commonLink
	*commonConnection
	kind energy.Kind
	// first is when the first request of the link was sent.
	first time.Duration
	// received is how many bytes came until heard. Of these, seen came over the connection of.
	received, seen quantity.Bytes
	heard          time.Duration
	of             *transport.Conn
}

// look counts what came over the present session.
func (l *seenLink) look(now time.Duration) {
	conn := l.session.Conn
	if l.of != conn {
		l.of, l.seen = conn, 0
	}
	got := conn.Received()
	if known, err := conn.Socket.RoundTrip(); err == nil {
		got = max(got, quantity.Bytes(known.Segments)*schedule.SegmentSize)
	}
	if got > l.seen {
		l.received += got - l.seen
		l.seen, l.heard = got, now
	}
}

func newPlanView(plan schedule.Plan) planView {
	_, opens := plan.(schedule.Opener)
	return planView{plan: plan, opens: opens}
}

func (v *planView) add(l *commonLink, c *commonConnection) {
	v.use = append(v.use, false)
	v.seen = append(v.seen, seenLink{commonLink: l, commonConnection: c, kind: energy.KindOf(l.Name, l.Device)})
	v.scene.Links, v.scene.Progress = append(v.scene.Links, schedule.Link{}), append(v.scene.Progress, schedule.Progress{})
}

// observe updates what the plan sees. more adds what only the engine knows of the progress of link x.
func (v *planView) observe(t *task, now time.Duration, more func(x int, progress *schedule.Progress)) {
	v.scene.Now = now
	var assigned quantity.Bytes
	for x := range v.seen {
		l := &v.seen[x]
		if l.first == 0 && len(l.active) > 0 {
			l.first = l.active[0].issued // An opening, which is not the plan's.
		}
		if l.session != nil {
			l.look(now)
		}
		progress := &v.scene.Progress[x]
		*progress = schedule.Progress{Kind: l.kind, Received: l.received, Silence: math.MaxInt64, Unfinished: l.expected}
		if l.Requests > 0 {
			progress.Age, progress.Silence = now-l.first, now-max(l.first, l.heard)
		}
		v.scene.Links[x] = l.known(l.commonLink, now)
		more(x, progress)
		assigned += progress.Unfinished
	}
	if t.payload == nil {
		return
	}
	t.show(&v.scene, assigned)
	for _, l := range v.seen {
		for _, r := range l.active {
			v.scene.Reach(r.Offset, r.next())
		}
	}
}

// begins notes the first request of a link.
func (v *planView) begins(x int, next order, now time.Duration) {
	if next.Length > 0 && v.seen[x].first == 0 {
		v.seen[x].first = now
	}
}
