package download

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
)

// planned is a policy with a plan above it. The plan chooses the links that are used. A plan that
// divides segments also chooses what each link requests. With rescue, all links are used while
// none that the plan chose works.
type planned struct {
	policy
	view      planView
	rescues   bool
	log       *slog.Logger
	plan      schedule.Plan
	segments  schedule.Segmenter
	pipeline  schedule.Pipeliner
	forsaking schedule.Forsaker
	waiter    schedule.Waiter
	opens     bool
	scene     schedule.Scene
	// use says which links the plan uses, and work is what it knows of each.
	use  []bool
	work []subsegment
	// overruledUntil is until when rescue uses all links.
	overruledUntil time.Duration
	// dividing says that a segment was just divided: links request their shares of it, and
	// nothing else.
	dividing bool
}

// overruling is for how long rescue uses all links after none of the plan's links worked. It
// avoids connecting the others again for each short failure.
const overruling = 2 * time.Second

func newPlanned(v planView, under policy, plan schedule.Plan, rescues bool, log *slog.Logger) policy {
	connections := v.all()
	p := &planned{
		policy: under, view: v, rescues: rescues, log: log, plan: plan,
		use: make([]bool, len(connections)), work: make([]subsegment, len(connections)),
	}
	p.segments, _ = plan.(schedule.Segmenter)
	p.pipeline, _ = plan.(schedule.Pipeliner)
	p.forsaking, _ = plan.(schedule.Forsaker)
	p.waiter, _ = plan.(schedule.Waiter)
	_, p.opens = plan.(schedule.Opener)
	p.scene.Links = make([]schedule.Link, len(connections))
	p.scene.Progress = make([]schedule.Progress, len(connections))
	for x, c := range connections {
		c.link.shortQueue = p.opens
		p.work[x].kind = energy.KindOf(c.link.Name, c.link.Device)
	}
	p.choose(0)
	return p
}

func (p *planned) opensWithRange() bool { return p.opens && p.view.isNew() }

func (p *planned) supervise(ctx context.Context) {
	p.policy.supervise(ctx)
	p.view.every(ctx, p.plan.Every(), p.look)
}

// look lets the plan choose again, and gives idle links work.
func (p *planned) look(now time.Duration) {
	if p.view.isOver() {
		return
	}
	p.choose(now)
	p.forsake(now)
	p.disconnect()
	p.view.assign()
}

// disconnect closes the idle connections of spared links. With each keep-alive an open one would
// wake the link's radio.
func (p *planned) disconnect() {
	for _, c := range p.view.all() {
		if s := c.session; c.link.spared && s != nil && s.active == 0 && c.asking == nil {
			p.view.disconnect(c)
		}
	}
}

// choose asks the plan which links it uses.
func (p *planned) choose(now time.Duration) {
	p.observe(now)
	p.plan.Use(&p.scene, p.use)
	if p.waiter != nil {
		p.view.setWaits(p.waiter.Waits(&p.scene))
	}
	works := slices.ContainsFunc(p.view.all(), func(c *connection) bool {
		return p.use[c.index] && !p.isTroubled(c, now)
	})
	if p.rescues && !works {
		p.overruledUntil = now + overruling
	}
	overruled := now < p.overruledUntil
	for x, c := range p.view.all() {
		spared := !overruled && (!p.use[x] || p.work[x].forsaken)
		if c.link.spared != spared {
			c.link.spared = spared
			c.wake()
		}
		p.scene.Links[x].Spared = spared
		if spared {
			p.unreserve(x)
		}
	}
}

// isTroubled reports whether the link does not work. A link that is being connected for the first
// time works.
func (p *planned) isTroubled(c *connection, now time.Duration) bool {
	return c.out != nil || c.link.refused != nil || c.link.down || c.suspect || now < c.notBefore || c.failures > 0 && !c.alive()
}

// unreserve makes the link's reserved ranges free.
func (p *planned) unreserve(x int) {
	for _, r := range p.work[x].reserved {
		p.view.release(r)
	}
	p.work[x].reserved = nil
}

// forsake stops using the links that the plan gives up.
func (p *planned) forsake(now time.Duration) {
	if p.forsaking == nil {
		return
	}
	for x, c := range p.view.all() {
		if c.link.spared || p.work[x].forsaken || len(c.active) == 0 || !p.forsaking.Forsake(x, &p.scene) {
			continue
		}
		p.log.Info("link is given up as slow", "link", c.link.Name)
		p.work[x].forsaken, c.link.spared, p.scene.Links[x].Spared = true, true, true
		p.view.forsake(c, now)
	}
}

// observe updates what the plan sees.
func (p *planned) observe(now time.Duration) {
	s := &p.scene
	s.Now = now
	var assigned quantity.Bytes
	for x, c := range p.view.all() {
		w := &p.work[x]
		s.Links[x] = c.known(now)
		w.look(c.session, now)
		progress := schedule.Progress{
			Kind:       w.kind,
			Usable:     c.alive() && !c.link.down,
			Received:   w.received,
			Goodput:    w.rate(now, c.link.Meter.Total()),
			Finished:   w.finished,
			Unfinished: c.expected,
		}
		for _, r := range w.reserved {
			progress.Unfinished += r.Length
		}
		if w.first == 0 && len(c.active) > 0 {
			w.first = c.active[0].issued // An opening, which is not the plan's.
		}
		if c.link.Requests > 0 {
			progress.Age, progress.Silence = now-w.first, now-max(w.first, w.heard)
		} else {
			progress.Silence = math.MaxInt64
		}
		assigned += progress.Unfinished
		s.Progress[x] = progress
	}
	part, free, left, missing, isKnown := p.view.progress()
	if !isKnown {
		return
	}
	s.Payload, s.Start, s.Free = part.Length, part.Offset, free
	s.Left = left + assigned
	// The payload does not know yet of a request that was just given up.
	s.InOrder = max(s.InOrder, missing)
	if s.Left == 0 {
		s.InOrder = part.End()
	}
	for _, c := range p.view.all() {
		for _, r := range c.active {
			if r.Offset <= s.InOrder && s.InOrder < r.next() {
				s.InOrder = r.next()
			}
		}
	}
}

func (p *planned) due(c *connection, r *request, now time.Duration) bool {
	p.work[c.index].follow(c, r, now)
	switch {
	case p.pipeline == nil:
		return p.policy.due(c, r, now)
	case c.newest == nil:
		return r.complete()
	}
	return r == c.newest && r.left() <= p.pipeline.Ahead(c.pipe(now))
}

func (p *planned) ahead(c *connection) quantity.Bytes {
	if p.pipeline == nil {
		return p.policy.ahead(c)
	}
	return p.pipeline.Ahead(c.pipe(p.view.now()))
}

// unreachable ends the download as published. That is so even if all bytes are assigned, as long
// as the link has not requested those that are reserved for it.
func (p *planned) unreachable(c *connection, err error) (time.Duration, bool) {
	if len(p.work[c.index].reserved) > 0 {
		p.view.fail(c, err)
		return 0, true
	}
	return p.policy.unreachable(c, err)
}

func (p *planned) next(c *connection, now time.Duration) (next order) {
	p.choose(now)
	switch {
	case c.link.spared:
		return order{}
	case p.segments != nil:
		next = p.segment(c, now)
	default:
		next = p.policy.next(c, now)
	}
	if next.Length > 0 && p.work[c.index].first == 0 {
		p.work[c.index].first = now
	}
	return next
}

// segment is the link's next subsegment: of the last divided segment, else of the bytes that it
// recovers from another link, else of a new segment.
func (p *planned) segment(c *connection, now time.Duration) (next order) {
	x := c.index
	if c.session == nil {
		return order{}
	}
	if len(p.work[x].reserved) == 0 && !p.dividing {
		next.from = p.recover(c, now)
	}
	if len(p.work[x].reserved) == 0 && !p.dividing {
		size := p.segments.Segment(x, &p.scene)
		p.choose(now)
		if c.link.spared {
			return order{}
		}
		if whole := p.view.take(size); whole.Length > 0 {
			p.divide(whole.Range, x)
		}
	}
	own := &p.work[x].reserved
	if len(*own) == 0 {
		return order{}
	}
	next.Range, *own = (*own)[0], (*own)[1:]
	return next
}

// divide reserves the parts of a range for the links, as the plan shares it on behalf of link x.
// The fastest link gets the first part.
func (p *planned) divide(whole ranges.Range, x int) {
	shares := make([]quantity.Bytes, len(p.work))
	p.segments.Share(x, whole.Length, &p.scene, shares)
	order := make([]int, 0, len(shares))
	for i := range shares {
		if shares[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(math.Copysign(1, float64(p.scene.Progress[b].Goodput-p.scene.Progress[a].Goodput)))
	})
	for _, i := range order {
		part := ranges.Range{Offset: whole.Offset, Length: shares[i]}
		whole.Offset += part.Length
		p.work[i].reserved = append(p.work[i].reserved, part)
		p.scene.Progress[i].Unfinished += part.Length
	}
	p.dividing = true
	defer func() { p.dividing = false }()
	for _, other := range p.view.all() {
		if other.index != x && shares[other.index] > 0 && other.session != nil && other.newest == nil {
			p.view.request(other)
		}
	}
}

// recover takes the unfinished bytes from the link that the reader waits for, if the plan wants
// that, and divides them again. That link gets a new connection, since only that ends an answer
// in HTTP/1.1. recover returns the name of that link.
func (p *planned) recover(c *connection, now time.Duration) (from string) {
	for _, other := range p.view.all() {
		if other == c || other.link.spared || p.isAwaited(other, now) {
			continue
		}
		rest, ok := p.holds(other, p.scene.InOrder)
		if !ok || !p.segments.Recover(c.index, other.index, rest.Length, &p.scene) {
			continue
		}
		w := &p.work[other.index]
		later := w.reserved
		w.reserved = nil
		for _, r := range slices.Clone(other.active) {
			if left := p.view.drop(other, r, now); left.Offset == rest.Offset {
				continue
			} else if left.Length > 0 {
				later = append([]ranges.Range{left}, later...)
			}
		}
		later = slices.DeleteFunc(later, func(r ranges.Range) bool { return r == rest })
		p.view.failedOver(other, c, rest.Length, slow, now)
		if other.session != nil {
			p.view.disconnect(other)
			other.wake()
		}
		p.divide(rest, c.index)
		w.reserved = append(w.reserved, later...)
		return other.link.Name
	}
	return ""
}

// isAwaited reports whether all requests of the link are too new for an answer. Without this,
// links would take the bytes from each other for ever if a server answers late.
func (p *planned) isAwaited(c *connection, now time.Duration) bool {
	var patience time.Duration
	for _, one := range p.view.all() {
		patience = max(patience, one.patience())
	}
	return slices.ContainsFunc(c.active, func(r *request) bool {
		return r.received == 0 && now-r.issued < patience
	}) && !slices.ContainsFunc(c.active, func(r *request) bool { return r.received > 0 })
}

// holds returns the link's unfinished range that begins at an offset, in flight or reserved.
func (p *planned) holds(c *connection, offset quantity.Bytes) (ranges.Range, bool) {
	for _, r := range c.active {
		if left := (ranges.Range{Offset: r.next(), Length: r.left()}); left.Length > 0 && left.Offset == offset {
			return left, true
		}
	}
	if reserved := p.work[c.index].reserved; len(reserved) > 0 && reserved[0].Offset == offset {
		return reserved[0], true
	}
	return ranges.Range{}, false
}
