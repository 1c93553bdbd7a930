package download

import (
	"errors"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
)

// Lanes lets links have several connections.
type Lanes struct {
	// Most is how many a link may have, over HTTP/1.1 three times as many: a connection
	// there cannot be asked for the next bytes before it has brought the last.
	Most int
}

// lane is what a linkState has where a link has several connections. To the
// engine each is a link of its own, which shares the account of its link. The
// first lane is there always, and connects again; a further one that fails is
// gone, and what it owed is free, and one whose server takes no more requests is gone
// when it has brought what it owes.
type lane struct {
	// first is the link's first lane; nil for that itself.
	first *linkState
	// growth, of the first, decides how many there are; shown is what making
	// them has shown.
	growth *schedule.Growth
	shown  schedule.Shown
	// away, of the first, is since when the link cannot be used; 0 if it can.
	away time.Duration
	// answers, of the first, says that the link, which was away, has its carrier
	// again, or that somebody answers who did not at first; isBack that it was given
	// new lanes since, though it may not be usable yet.
	answers, isBack bool
	// together, of the first, is what all deliver.
	together *throughput.Pace
	// leaving says that the lane takes no more requests.
	leaving bool
}

// errGone is why a lane that was given up takes no more requests.
var errGone = errors.New("the connection is not used any more")

// lanes are those of the link.
func (d *download) lanes(l *linkState) (all []*linkState) {
	for _, other := range d.links {
		if other.account == l.account {
			all = append(all, other)
		}
	}
	return all
}

// isQueued reports whether packets wait at the link, as its connections see it to
// which something comes.
func (d *download) isQueued(link *linkState, now time.Duration) bool {
	var flow schedule.Flow
	for _, l := range d.links {
		if l.link() == link && l.hears(now) {
			flow.Add(l.rtt.Last, l.rtt.Min, 0, true)
		}
	}
	return flow.IsQueued()
}

// isOnly reports whether no other lane of the link is connected.
func (d *download) isOnly(l *linkState) bool {
	return !slices.ContainsFunc(d.lanes(l), func(other *linkState) bool { return other != l && other.session != nil })
}

// remove gives a further lane up. What it owed is free again. The connection of one
// that was only not needed is kept: an outage does it no harm, while TCP waits ever
// longer on those to which something was under way.
func (d *download) remove(l *linkState, now time.Duration) {
	if l.out != nil {
		return
	}
	spared := l.leaving && l.session != nil && l.session.isIdle() && d.spare(l, l.session)
	l.out = errGone
	d.abandon(l, slices.Clone(l.active), lost, now)
	l.abandonAttempt()
	for len(l.completing) > 0 {
		d.giveUpOn(l, l.completing[0], lost, now)
	}
	if s := l.session; s != nil {
		l.session = nil
		if !spared {
			d.close(l, s, false)
		}
	}
	d.links = slices.DeleteFunc(slices.Clone(d.links), func(other *linkState) bool { return other == l })
	for x, other := range d.links {
		other.index = x
	}
}

// withLanes is the engine with Rescue and Lanes.
type withLanes struct {
	withRescue
	most int
}

func (d withLanes) eager() bool { return d.isNew() }

// next is as with Rescue, but for what a lane's share of its link is, and where
// nothing is left: see repeat.
func (d withLanes) next(l *linkState, now time.Duration) (r ranges.Range, from string, ok bool) {
	if !l.usable(now) || l.leaving {
		return r, "", false
	}
	before := d.requests
	if r, from, ok = d.urgent(l, now); ok || d.requests > before {
		return r, from, ok
	}
	lanes := d.measured(now)
	works := d.merged(lanes, now)
	free := d.payload.Free(d.limit())
	if free == 0 {
		if r, from, ok = d.steal(l, works, now); !ok && d.requests == before {
			r, from, ok = d.balance(l, lanes, now)
		}
		if !ok && d.requests == before && d.payload.Free(d.part.End()) == 0 {
			d.repeat(l, works, now)
		}
		return r, from, ok
	}
	link := works[l.link().index]
	size := max(d.nextSize(l, now), l.pipe(now))
	if l.takesLong {
		size = free
	}
	size = min(size, schedule.LaneShare(lanes[l.index], link, schedule.Share(l.link().index, works, free)))
	if l.onTrial() {
		size = min(size, trial)
	}
	if size < schedule.MinimumRequest {
		if len(l.active) > 0 || !schedule.Largest(l.link().index, works, free) {
			return r, "", false
		}
		size = schedule.MinimumRequest
	}
	r, ok = d.payload.Take(size, d.limit())
	return r, "", ok
}

// merged is what links have to do, whose lanes have to do that. A link's first
// lane has its index.
func (d *download) merged(lanes []schedule.Work, now time.Duration) []schedule.Work {
	works := d.scratch.links[:0]
	for x, l := range d.links {
		if l.first == nil {
			works = append(works, lanes[x])
		} else {
			works[l.first.index].Join(lanes[x])
		}
		if lanes[x].Usable {
			works[l.link().index].Connections++
		}
	}
	for _, l := range d.links {
		// What those leave that have nothing to do others have already.
		if link := l.link(); link.together != nil && len(l.active) == 0 && l.pace.Total() > 0 && d.isBusy(link) {
			works[link.index].Rate = min(works[link.index].Rate, link.together.Rate(now))
		}
	}
	d.scratch.links = works
	guess(works, func(x int) bool {
		return !slices.ContainsFunc(d.links, func(l *linkState) bool { return l.link().index == x && !l.isFresh() })
	}, d.links)
	return works
}

// delivered counts what has come on the link.
func (l *linkState) delivered(bytes quantity.Bytes, now time.Duration) {
	l.pace.Add(now, bytes)
	if all := l.link().together; all != nil {
		all.Add(now, bytes)
	}
}

// begun says that the link has something to deliver, of which nothing comes
// before the delay.
func (l *linkState) begun(delay, now time.Duration) {
	l.pace.Begin(now, delay)
	if all := l.link().together; all != nil {
		all.Begin(now, delay)
	}
}

// isBusy reports whether a lane of the link has something to deliver.
func (d *download) isBusy(link *linkState) bool {
	return slices.ContainsFunc(d.links, func(l *linkState) bool { return l.link() == link && len(l.active) > 0 })
}

// link is the link's first lane.
func (l *linkState) link() *linkState {
	if l.first != nil {
		return l.first
	}
	return l
}

// begin races the connections that a link begins with.
func (d withLanes) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.links {
		l.growth = &schedule.Growth{Most: d.most}
		l.together = throughput.NewPace(PaceWindow)
		l.little = d.window != nil
		for range l.growth.Begin() - 1 {
			d.add(l)
		}
	}
}

// isOpening reports whether the link's connection awaits its first answer.
func (d *download) isOpening(l *linkState) bool { return d.policy.eager() && l.asking == l.session }

// tend makes each link have as many lanes as it should.
func (d withLanes) tend(now time.Duration) {
	if d.payload == nil {
		return
	}
	for _, l := range d.links {
		if l.first == nil {
			d.tendLink(l, now)
		}
	}
}

func (d withLanes) tendLink(first *linkState, now time.Duration) {
	flow := schedule.Flow{Total: first.meter.Total(), Busy: d.payload.Free(d.limit()) > 0}
	further := 0
	lanes := d.lanes(first)
	hears := slices.ContainsFunc(lanes, func(l *linkState) bool { return l.hears(now) })
	for _, l := range lanes {
		switch {
		case l == first:
		case l.suspect:
			if hears {
				first.growth.Lost()
			}
			d.remove(l, now)
			continue
		case l.leaving && len(l.active) == 0:
			d.remove(l, now)
			continue
		default:
			further++
		}
		if l.session != nil && l.pace.Total() > 0 {
			l.measure()
			if came := l.session.hole.look(l.session.Received(), l.rtt.OutOfOrder, now, l.rtt.Last); came > 0 {
				l.delivered(came, now)
			}
			// It was chosen before what is behind a lost packet counted as it comes.
			l.pace.Average(max(PaceWindow, 2*l.rtt.Last))
			flow.Add(l.rtt.Last, l.rtt.Min, l.pace.Rate(now), l == first)
		}
	}
	first.together.Average(max(PaceWindow, 2*first.rtt.Last))
	usable := first.usable(now)
	if !usable && first.away == 0 && first.session != nil {
		first.away, first.answers, first.isBack = now, false, false
	}
	begins := (usable || first.answers) && first.away > 0 && !first.isBack && now-first.away > LeastSilence
	if begins {
		first.growth.Back(further, first.answers)
		first.isBack = true
	}
	switch {
	case usable:
		first.away = 0
	case !begins:
		return
	}
	count := first.growth.Count(now, flow)
	// While a reader pauses, who is idle is closed by the server, again and again; and
	// a link that is silent would only silence them, too.
	for ; further < count-1 && (hears || begins) && (flow.Busy || d.window == nil); further++ {
		d.add(first)
	}
	if surplus := further + 1 - count; surplus > 0 {
		for _, l := range d.slowest(first, now)[:surplus] {
			l.leaving = true
		}
	}
}

// slowest is the link's further lanes, those first that are given up first.
func (d *download) slowest(first *linkState, now time.Duration) []*linkState {
	lanes := slices.DeleteFunc(d.lanes(first), func(l *linkState) bool { return l == first })
	schedule.GivenUpFirst(lanes,
		func(l *linkState) bool { return l.leaving },
		func(l *linkState) quantity.Rate { return l.pace.Rate(now) })
	return lanes
}

// isSilent reports whether nothing has come for longer than usual, where others
// of the link may do better.
func (l *linkState) isSilent(now time.Duration) bool {
	return l.session == nil || now-l.session.heardAt > max(LeastSilence/2, 2*l.rtt.Last)
}

// hears reports whether something comes of what the lane asked for. One that asked
// for nothing does not tell.
func (l *linkState) hears(now time.Duration) bool { return len(l.active) > 0 && !l.isSilent(now) }

// startRoom is what the lane can bring in slow start until its next order comes.
func (l *linkState) startRoom() quantity.Bytes {
	link := l.link()
	most := link.shown.Most()
	if most > 0 {
		most = max(most, l.meter.Peak())
	}
	return schedule.StartRoom(most, link.growth.Connections(), l.delay())
}

// isLane reports whether the link may have several connections.
func (l *linkState) isLane() bool { return l.first != nil || l.growth != nil }

// broken says that the lane's connection failed. A further one is gone then.
func (l *linkState) broken() { l.suspect = l.suspect || l.first != nil }

// add gives the link another lane.
func (d withLanes) add(first *linkState) {
	l := &linkState{
		Link:    first.Link,
		account: first.account,
		lane:    lane{first: first},
		little:  first.little,
		index:   len(d.links),
		url:     first.url,
		rtt:     first.rtt,
		delays:  slices.Clone(first.delays),
		pace:    throughput.NewPace(PaceWindow),
		health:  newHealth(),
	}
	d.links = append(slices.Clone(d.links), l)
	d.wg.Go(func() {
		err := d.connect(d.ctx, l)
		d.mu.Lock()
		defer d.mu.Unlock()
		if l.session != nil || l.out != nil {
			return
		}
		if err != nil && !link.IsCrowded(err) {
			first.growth.Lost()
		}
		d.remove(l, time.Since(d.start))
	})
}
