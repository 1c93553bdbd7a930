package download

import (
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// division lets a plan choose the links that are used. A plan that divides segments also chooses what
// each link requests.
type division struct {
	planView
	p         *published
	segments  schedule.Segmenter
	pipeline  schedule.Pipeliner
	forsaking schedule.Forsaker
	// dividing says that a segment was just divided: links request their shares of it, and nothing else.
	dividing bool
}

// planWork is what a plan does with a link.
type planWork struct {
	// reserved are the ranges that the link requests next.
	reserved []ranges.Range
	// forsaken says that the plan gave the link up.
	forsaken bool
	goodput
}

func newDivision(p *published, plan schedule.Plan) *division {
	v := &division{p: p, planView: newPlanView(plan)}
	v.segments, _ = plan.(schedule.Segmenter)
	v.pipeline, _ = plan.(schedule.Pipeliner)
	v.forsaking, _ = plan.(schedule.Forsaker)
	for _, l := range p.links {
		v.add(&l.commonLink, &l.commonConnection)
	}
	v.choose(0)
	return v
}

// look lets the plan choose again, and gives idle links work.
func (v *division) look(now time.Duration) {
	if v.p.ctx.Err() != nil {
		return
	}
	v.choose(now)
	v.forsake(now)
	// With each keep-alive an open connection would wake the radio of a spared link.
	for _, l := range v.p.links {
		if s := l.session; l.spared && s != nil && s.active == 0 && l.asking == nil {
			v.p.close(l, s)
		}
	}
	v.p.assign()
}

func (v *division) choose(now time.Duration) {
	v.observe(&v.p.task, now, func(x int, progress *schedule.Progress) {
		l := v.p.links[x]
		progress.Usable = l.session != nil && !l.session.draining
		progress.Goodput, progress.Finished = l.rate(now, l.Meter.Total()), l.finished
		for _, r := range l.reserved {
			progress.Unfinished += r.Length
		}
	})
	v.plan.Use(&v.scene, v.use)
	for x, l := range v.p.links {
		spared := !v.use[x] || l.forsaken
		if l.spared != spared {
			l.spared = spared
			notify(l.need)
		}
		v.scene.Links[x].Spared = spared
		if spared {
			for _, r := range l.reserved {
				v.p.payload.Release(r)
			}
			l.reserved = nil
		}
	}
}

// forsake stops using the links that the plan gives up.
func (v *division) forsake(now time.Duration) {
	if v.forsaking == nil {
		return
	}
	for x, l := range v.p.links {
		if l.spared || l.forsaken || len(l.active) == 0 || !v.forsaking.Forsake(x, &v.scene) {
			continue
		}
		v.p.Log.Info("link is given up as slow", "link", l.Name)
		l.forsaken, l.spared, v.scene.Links[x].Spared = true, true, true
		var bytes quantity.Bytes
		for _, r := range slices.Clone(l.active) {
			left := v.p.drop(l, r, now)
			v.p.payload.Release(left)
			bytes += left.Length
		}
		if bytes > 0 {
			v.p.recordFailover(&l.commonLink, "", bytes, slow, now)
		}
	}
}

// next is the link's next request; none if the plan does not use it.
func (v *division) next(l *publishedLink, now time.Duration) (next order) {
	v.choose(now)
	switch {
	case l.spared:
		return order{}
	case v.segments != nil:
		next = v.segment(l, now)
	default:
		next = v.p.take(v.p.nextSize(l, now))
	}
	v.begins(l.index, next, now)
	return next
}

// segment is the link's next subsegment: of the last divided segment, else of the bytes that it
// recovers from another link, else of a new segment.
func (v *division) segment(l *publishedLink, now time.Duration) (next order) {
	if l.session == nil {
		return order{}
	}
	if len(l.reserved) == 0 && !v.dividing {
		next.from = v.recover(l, now)
	}
	if len(l.reserved) == 0 && !v.dividing {
		size := v.segments.Segment(l.index, &v.scene)
		if v.choose(now); l.spared {
			return order{}
		}
		if whole := v.p.take(size); whole.Length > 0 {
			v.divide(whole.Range, l.index)
		}
	}
	if len(l.reserved) == 0 {
		return order{}
	}
	next.Range, l.reserved = l.reserved[0], l.reserved[1:]
	return next
}

// divide reserves the parts of a range for the links, as the plan shares it on behalf of link x.
// The fastest link gets the first part.
func (v *division) divide(whole ranges.Range, x int) {
	shares := make([]quantity.Bytes, len(v.p.links))
	v.segments.Share(x, whole.Length, &v.scene, shares)
	order := make([]int, 0, len(shares))
	for i := range shares {
		if shares[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(math.Copysign(1, float64(v.scene.Progress[b].Goodput-v.scene.Progress[a].Goodput)))
	})
	for _, i := range order {
		part := ranges.Range{Offset: whole.Offset, Length: shares[i]}
		whole.Offset += part.Length
		v.p.links[i].reserved = append(v.p.links[i].reserved, part)
		v.scene.Progress[i].Unfinished += part.Length
	}
	v.dividing = true
	defer func() { v.dividing = false }()
	for _, other := range v.p.links {
		if other.index != x && shares[other.index] > 0 && other.session != nil {
			v.p.request(other)
		}
	}
}

// recover takes the unfinished bytes from the link that the reader waits for, if the plan wants
// that, and divides them again. That link gets a new connection, since only that ends an answer
// in HTTP/1.1. recover returns the name of that link.
func (v *division) recover(l *publishedLink, now time.Duration) (from string) {
	for _, other := range v.p.links {
		if other == l || other.spared || v.isAwaited(other, now) {
			continue
		}
		rest, ok := other.holds(v.scene.InOrder)
		if !ok || !v.segments.Recover(l.index, other.index, rest.Length, &v.scene) {
			continue
		}
		later := other.reserved
		other.reserved = nil
		for _, r := range slices.Clone(other.active) {
			if left := v.p.drop(other, r, now); left.Offset == rest.Offset {
				continue
			} else if left.Length > 0 {
				later = append([]ranges.Range{left}, later...)
			}
		}
		later = slices.DeleteFunc(later, func(r ranges.Range) bool { return r == rest })
		v.p.recordFailover(&other.commonLink, l.Name, rest.Length, slow, now)
		if other.session != nil {
			v.p.close(other, other.session)
			notify(other.need)
		}
		v.divide(rest, l.index)
		other.reserved = append(other.reserved, later...)
		return other.Name
	}
	return ""
}

// isAwaited reports whether all requests of the link are too new for an answer. Without this,
// links would take the bytes from each other for ever if a server answers late.
func (v *division) isAwaited(l *publishedLink, now time.Duration) bool {
	var patience time.Duration
	for _, one := range v.p.links {
		patience = max(patience, schedule.PaceWindow, 2*one.delay())
	}
	return slices.ContainsFunc(l.active, func(r *request) bool {
		return r.received == 0 && now-r.issued < patience
	}) && !slices.ContainsFunc(l.active, func(r *request) bool { return r.received > 0 })
}

// holds returns the link's unfinished range that begins at an offset, in flight or reserved.
func (l *publishedLink) holds(offset quantity.Bytes) (ranges.Range, bool) {
	for _, r := range l.active {
		if r.left() > 0 && r.next() == offset {
			return r.rest(), true
		}
	}
	if len(l.reserved) > 0 && l.reserved[0].Offset == offset {
		return l.reserved[0], true
	}
	return ranges.Range{}, false
}

// goodput measures the rate of the subsegments that arrive over a link (GreenBag IV.B).
type goodput struct {
	// current is the request whose bytes arrive now. It is measured since that time, when the
	// link had received had bytes. Its rate means nothing before the time least has passed.
	current *request
	since   time.Duration
	had     quantity.Bytes
	least   time.Duration
	// last is the rate of the last complete request that was long enough to measure, and
	// finished how many such requests there were.
	last     quantity.Rate
	finished int
}

// leastMeasured is how long a subsegment must arrive at least until its rate is meaningful; so are two round trips,
// queue included. Behind a lost packet nothing arrives for a round trip, and then all at once.
const leastMeasured = transfer.LeastSilence

// rate is the mean over the present subsegment, or over the last one while the present one is
// young. total is how many bytes the link has received.
func (g *goodput) rate(now time.Duration, total quantity.Bytes) quantity.Rate {
	if took := now - g.since; g.current != nil && g.current.goesOn() && took >= g.least {
		return (total - g.had).Per(took)
	}
	return g.last
}

func (g *goodput) follow(l *publishedLink, r *request, now time.Duration) {
	if g.current == nil || g.current != r && !g.current.goesOn() {
		// How long the first bytes took to arrive is not known.
		g.measureFrom(l, r, now)
	}
	if g.current != r || !r.complete() {
		return
	}
	rest, took, pace := l.Meter.Total()-g.had, now-g.since, l.pace.Rate(now)
	// Most of a small request may arrive with its first bytes: then its rate means nothing.
	measured := took >= g.least && 2*rest >= r.received
	switch {
	case measured:
		g.last = rest.Per(took)
		g.finished++
	case g.last == 0 && pace > 0:
		g.last = pace
		g.finished++
	}
	// If the next request was sent in time, the link goes on with it, even while its bytes wait
	// behind a lost packet. A request that was too short is measured together with it.
	if next := l.newest; next != nil && next != r && now-next.issued >= l.rtt.Min {
		if measured {
			g.measureFrom(l, next, now)
		}
		g.current = next
	}
}

func (g *goodput) measureFrom(l *publishedLink, r *request, now time.Duration) {
	l.measure()
	g.current, g.since, g.had, g.least = r, now, l.Meter.Total(), max(leastMeasured, 2*l.rtt.Last)
}
