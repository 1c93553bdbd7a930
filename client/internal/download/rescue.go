package download

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/regularly"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transport"
)

var errGoodbye = errors.New("the server says goodbye before it has answered")

const (
	// PaceWindow is the time over which rescue takes a link's throughput: a
	// few round trips. The exported ones are of uploads, too.
	PaceWindow = 500 * time.Millisecond
	// period is the time between two looks at all links.
	period = 50 * time.Millisecond
	// maxStale is how much of a cancelled body still arrives at most: the
	// server's send queue.
	maxStale = 1 << 20

	// A link is suspect when nothing arrived for LeastSilence, or for
	// firstSilence if nothing of the present requests has come yet, and not
	// for SilentTrips round trips.
	LeastSilence = 300 * time.Millisecond
	firstSilence = time.Second
	SilentTrips  = 4
	mostSilence  = 10 * time.Second

	// A banned link is tried again after leastBan, then after twice as long.
	leastBan = 250 * time.Millisecond
	mostBan  = 8 * time.Second
	// Later a silent link is asked again after one part of askedAgain of its silence.
	askedAgain = 32
	// An attempt to connect may take attemptTrips round trips, not less than
	// leastAttempt, or firstAttempt while none is known, and more each time.
	attemptTrips = 8
	leastAttempt = 500 * time.Millisecond
	firstAttempt = 5 * time.Second
	mostAttempt  = 20 * time.Second
	// shortLife is how soon a server that says goodbye without having sent
	// anything has failed. Later it found the connection idle.
	shortLife = time.Second
	// hopeless is how often every link must have failed to connect at the
	// beginning until the download fails.
	hopeless = 3
	// mostWhole is how often a server that served ranges may answer with the
	// whole until it is taken for one that does not.
	mostWhole = 4

	// trial is the most that a link which failed before takes until bytes
	// came again.
	trial = 4 * schedule.MinimumRequest

	// A link is slow when it was for slowTrips round trips, not less than
	// leastSlow.
	slowTrips = 4
	leastSlow = 500 * time.Millisecond
)

// Reasons of failovers.
const (
	lost     = "lost"
	excluded = "excluded"
	stalled  = "stalled"
	slow     = "slow"
)

// health is what rescue knows of a link.
type health struct {
	// need receives when the link may need a connection, and hurry when it
	// is worth trying at once.
	need, hurry chan struct{}
	// abandonAttempt ends the present attempt to connect.
	abandonAttempt context.CancelFunc
	// out is why the link is not used any more, and refused why it gets no ranges: it
	// is used again where only a plain GET is left.
	out, refused error
	// down says that the device has no carrier or is gone, and downSince since
	// when.
	down      bool
	downSince time.Duration
	// suspect says that nothing arrives though it should.
	suspect bool
	// failures counts what went wrong since bytes arrived; problem is the
	// last of it.
	failures int
	problem  error
	// notBefore is when the link may take requests again.
	notBefore time.Duration
	// slowSince is since when the link is slow; 0 if it is not.
	slowSince time.Duration
	// spared says that a plan does not use the link now.
	spared bool
}

func newHealth() health {
	return health{need: make(chan struct{}, 1), hurry: make(chan struct{}, 1), abandonAttempt: func() {}}
}

// needsSession reports whether the link should be connected.
func (l *linkState) needsSession() bool {
	return l.out == nil && !l.down && !l.spared && (l.session == nil || l.suspect || l.session.draining)
}

// alive reports whether nothing speaks against the link's session.
func (l *linkState) alive() bool {
	return l.session != nil && !l.session.draining && l.out == nil && !l.suspect
}

// sessions are all that the link has.
func (l *linkState) sessions() []*session {
	all := slices.Clone(l.completing)
	if l.session != nil {
		all = append(all, l.session)
	}
	return all
}

// usable reports whether the link can take requests.
func (l *linkState) usable(now time.Duration) bool {
	return l.alive() && !l.down && !l.spared && now >= l.notBefore && l.link().refused == nil
}

// interrupted reports whether the link has no carrier since so short a time
// that it may go on at any moment, as after a handover. One that has nothing to
// deliver is not noticed to be silent.
func (l *linkState) interrupted(now time.Duration) bool {
	return l.alive() && l.down && !l.spared && now-l.downSince <= l.silence(l.session)
}

// wake lets keep look at the link.
func (l *linkState) wake() { notify(l.need) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits until it is time, or worth it, to try again.
func (l *linkState) pause(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-l.hurry:
	}
}

// recovered says that bytes arrived.
func (l *linkState) recovered() {
	l.failures, l.hops, l.portal = 0, 0, false
	if l.suspect && !l.down {
		l.suspect = false
		l.abandonAttempt()
	}
}

// doubled is least · 2^times, at most most.
func doubled(least time.Duration, times int, most time.Duration) time.Duration {
	return min(least<<min(max(times, 0), 20), most)
}

func (l *linkState) attemptTimeout() time.Duration {
	least := firstAttempt
	if l.rtt.Last > 0 {
		least = max(leastAttempt, attemptTrips*l.rtt.Last)
	}
	return doubled(least, l.failures, mostAttempt)
}

// betweenAttempts is how long a connection of several waits for an answer at first
// until it asks again, where nothing came any more: half a round trip, with the
// queue that there was. Else it is 0.
func (l *linkState) betweenAttempts() time.Duration {
	if !l.isLane() || !l.suspect {
		return 0
	}
	if l.rtt.Last == 0 {
		return leastBan
	}
	return max(period, l.rtt.Last/2)
}

// ban is for how long the link is left alone after its failures.
func (l *linkState) ban() time.Duration { return doubled(leastBan, l.failures-1, mostBan) }

// silence is how long nothing may arrive on a session.
func (l *linkState) silence(s *session) time.Duration {
	least := max(firstSilence, 2*l.delay())
	for _, r := range l.on(s) {
		if r.received > 0 {
			least = LeastSilence
		}
	}
	return doubled(max(least, SilentTrips*l.rtt.Last), l.failures, max(mostSilence, SilentTrips*l.rtt.Last))
}

// withRescue is the engine with Rescue: any server that sends files will do, and
// what one link fails to bring another one does. No link that could help is idle
// while bytes are missing: it gets what the scheduler gives it, else what others
// have not begun, else a part of what the slowest one has still to deliver.
type withRescue struct{ *download }

func (withRescue) offer(c *tls.Config) *tls.Config { return c }

func (withRescue) bare() bool { return false }

// accept refuses nothing. Ranges need a proof that they are of one file.
func (d withRescue) accept(r transport.Resource) (whole bool, err error) {
	return r.NoRanges || r.Size < 0 || !r.HasValidator() && !d.Verified, nil
}

func (d withRescue) watch(ctx context.Context, l *linkState) {
	if l.Watch != nil {
		d.wg.Go(func() { l.Watch(ctx, func(c link.Change) { d.changed(l, c) }) })
	}
}

func (d withRescue) supervise(ctx context.Context) {
	d.wg.Go(func() { d.look(ctx) })
}

func (withRescue) timed() bool { return true }

// due keeps the link at work, and lets one that had nothing to do ask again.
func (d withRescue) due(l *linkState, r *request, now time.Duration) bool {
	if l.newest == nil {
		return r.complete()
	}
	return d.overlapped(l, r) || l.expected < l.pipe(now)
}

func (withRescue) eager() bool { return false }

func (withRescue) begin() {}

func (withRescue) tend(time.Duration) {}

func (d withRescue) ahead(l *linkState) quantity.Bytes { return l.pipe(time.Since(d.start)) }

func (d withRescue) lost(l *linkState, bytes quantity.Bytes, now time.Duration) {
	d.failedOver(l, nil, bytes, lost, now)
}

func (d withRescue) freed() { d.assign() }

// look looks at all links at regular times.
func (d withRescue) look(ctx context.Context) {
	regularly.Do(ctx, period, func() {
		d.mu.Lock()
		now := time.Since(d.start)
		for _, l := range d.links {
			d.check(l, now)
		}
		d.rate(now)
		d.askAgain(now)
		if d.race != nil {
			d.dethrone(now)
			for _, l := range d.links {
				if l.usable(now) {
					d.enter(l)
				}
			}
		}
		d.openRest()
		d.policy.tend(now)
		d.assign()
		d.giveUp(now)
		d.mu.Unlock()
	})
}

// askAgain has links ask what the URL stands for while none of them does on the session
// that it has now: an older one may never tell.
func (d withRescue) askAgain(now time.Duration) {
	if d.payload != nil || d.race != nil {
		return
	}
	for _, l := range d.links {
		if l.asking != l.session {
			l.asking = nil
		}
	}
	for _, l := range d.links {
		if l.usable(now) && !d.isAsked() {
			d.proceed(l)
		}
	}
}

// check finds out whether the link's sessions still work.
func (d withRescue) check(l *linkState, now time.Duration) {
	for _, s := range slices.Clone(l.completing) {
		if d.listen(l, s, now); l.isDead(s, now) {
			d.giveUpOn(l, s, stalled, now)
		}
	}
	s := l.session
	if s == nil || l.out != nil {
		return
	}
	// Without requests it is what others were cancelled for.
	if d.listen(l, s, now) && l.suspect && !l.down && len(l.on(s)) > 0 {
		l.suspect = false
		l.abandonAttempt()
	}
	switch {
	case !s.draining && !s.Usable():
		if !s.delivered && now-s.since < shortLife && now >= l.notBefore {
			l.failures++
			l.notBefore = now + l.ban()
			l.problem = errGoodbye
			if ended := s.Ended(); ended != nil {
				l.problem = fmt.Errorf("%w: %w", errGoodbye, ended)
			}
			l.broken()
		}
		d.lose(l, s)
	case !l.suspect && l.isDead(s, now):
		l.suspect = true
		l.failures++
		l.problem = fmt.Errorf("nothing arrived for %v", (now - s.heardAt).Round(time.Millisecond))
		s.wait = wait{}
		d.Log.Info("link is silent", "link", l.Name)
		l.asking, l.head = nil, nil
		l.wake()
	}
}

// listen takes note of what a session received. It is not silent while nothing
// is awaited of it, or it is not read.
func (d withRescue) listen(l *linkState, s *session, now time.Duration) (heard bool) {
	received := s.Received()
	heard = received != s.heard
	awaited := len(l.on(s)) > 0 || l.asking == s || d.race.on(l, s)
	switch {
	case heard:
		s.lateAt = now
	case !awaited && now-s.lateAt > l.silence(s):
		s.stale = s.Unread() // The server had not sent the rest yet.
	}
	switch {
	case heard && s.wait.since > 0:
		// The answer of the other end, or the beginning of the server's.
		s.heard, s.wait.there = received, now
	case heard || !awaited || s.Held() || d.race.waits(l):
		s.heard, s.heardAt, s.wait = received, now, wait{}
	}
	return heard
}

// rate finds out which links are slow.
func (d withRescue) rate(now time.Duration) {
	works := d.merged(d.measured(now), now)
	for _, l := range d.links {
		switch {
		case len(l.active) == 0 || !schedule.Slow(l.link().index, works):
			l.slowSince = 0
		case l.slowSince == 0:
			l.slowSince = now
		}
	}
}

// onTrial reports whether the link failed, and nothing has come since.
func (l *linkState) onTrial() bool { return l.failovers > 0 && l.pace.Total() == 0 }

// patience is how long a request that was just sent is left to the link.
func (l *linkState) patience() time.Duration { return max(leastSlow, 2*l.delay()) }

// isSlow reports whether the link is slow for longer than by chance.
func (l *linkState) isSlow(now time.Duration) bool {
	return l.slowSince > 0 && now-l.slowSince >= max(leastSlow, slowTrips*l.rtt.Min)
}

// works is what the links have to do, as far as it is known.
func (d withRescue) works(now time.Duration) []schedule.Work {
	works := d.measured(now)
	guess(works, func(x int) bool { return d.links[x].isFresh() }, d.links)
	return works
}

// isFresh reports whether the link does nothing by which its rate could be
// known.
func (l *linkState) isFresh() bool { return len(l.active) == 0 || l.pace.Total() == 0 }

// guess gives links of which nothing is known a rate. They are not trusted much.
func guess(works []schedule.Work, isFresh func(x int) bool, links []*linkState) {
	var sum quantity.Rate
	var known int
	for _, w := range works {
		if w.Rate > 0 {
			sum += w.Rate
			known++
		}
	}
	for x := range works {
		w := &works[x]
		if w.Usable && w.Rate == 0 && isFresh(x) {
			switch {
			case links[x].Bandwidth > 0:
				w.Rate = links[x].Bandwidth
			case links[x].shown.Rate() > 0:
				w.Rate = links[x].shown.Rate()
			case known > 0:
				w.Rate = sum / quantity.Rate(known) / 2
			}
		}
	}
}

// measured is what the links have to do, and how fast they have been.
func (d withRescue) measured(now time.Duration) []schedule.Work {
	works := cleared(&d.scratch.works, len(d.links))
	for x, l := range d.links {
		w := &works[x]
		*w = schedule.Work{
			Usable:    l.usable(now) || l.interrupted(now),
			Left:      l.expected,
			Delay:     l.idle(),
			RTT:       l.rtt.Min,
			Arrived:   l.pace.Total(),
			Bandwidth: l.Bandwidth,
		}
		if l.session == nil || l.suspect {
			continue
		}
		w.Left += max(0, l.session.stale-l.session.Unread())
		for _, r := range l.active {
			// The server sends one after the other, or so it may.
			w.Left += w.Tail
			w.Tail = r.tail()
		}
		w.Rate = l.pace.Rate(now)
		if d.window != nil && len(l.active) == 0 && now-l.session.lateAt > firstSilence {
			w.Rate = 0 // What it was when it was left to others does not keep them from it for ever.
		}
		if kept := l.session.hole.kept; kept > 0 {
			w.Left = max(min(w.Left, schedule.SegmentSize), w.Left-kept)
		}
	}
	return works
}

// next is what a sink waits for, else what the scheduler gives the link of
// what nobody has begun, at most its share, else a part of what another link
// has to deliver.
func (d withRescue) next(l *linkState, now time.Duration) (r ranges.Range, from string, ok bool) {
	if !l.usable(now) {
		return r, "", false
	}
	before := d.requests
	if r, from, ok = d.urgent(l, now); ok || d.requests > before {
		return r, from, ok
	}
	works := d.works(now)
	free := d.payload.Free(d.limit())
	if free == 0 {
		return d.steal(l, works, now)
	}
	size := d.nextSize(l, now)
	share := schedule.Share(l.index, works, free)
	if size <= 0 || l.takesLong {
		size = share
	}
	size = min(max(size, l.pipe(now)), share)
	if l.onTrial() {
		size = min(size, trial)
	}
	if size < schedule.MinimumRequest {
		if !schedule.Largest(l.index, works, free) {
			return r, "", false
		}
		size = schedule.MinimumRequest
	}
	r, ok = d.payload.Take(size, d.limit())
	return r, "", ok
}

// urgent takes what a sink needs next from a link that keeps it waiting.
func (d withRescue) urgent(l *linkState, now time.Duration) (ranges.Range, string, bool) {
	if d.window == nil {
		return ranges.Range{}, "", false
	}
	first := d.payload.Missing().Offset
	for _, other := range d.links {
		reason := ""
		switch {
		case other == l:
		case other.suspect || other.down:
			reason = stalled
		case other.isSlow(now) && !l.isSlow(now):
			reason = slow
		}
		if reason == "" {
			continue
		}
		for _, r := range other.active {
			// Two slow links would take it from each other for ever, and none
			// of it would come.
			young := reason == slow && now-r.issued < other.patience()
			if r.Offset <= first && first < r.limit && r.left() > 0 && !young && r.twin == nil &&
				(reason != slow || d.isSooner(l, r, now)) {
				if reason == slow && r.isHedgeable() {
					d.hedge(l, other, r, now)
					return ranges.Range{}, "", false
				}
				left := d.drop(other, r, now)
				d.failedOver(other, l, left.Length, reason, now)
				return left, other.Name, true
			}
		}
	}
	return ranges.Range{}, "", false
}

// isSooner reports whether a connection brings the rest of another one's request
// sooner than that one does, by what has come there since it was sent, and sooner than
// a reader would miss it.
func (d withRescue) isSooner(l *linkState, r *request, now time.Duration) bool {
	came, due := r.coming()
	late := schedule.Work{Rate: came.Per(now - r.issued), Left: due}
	end, thief := late.Late(true), d.works(now)[l.index]
	return end >= d.waits && thief.Rate > 0 && thief.Sooner(r.left(), end)
}

// unreachable takes note of an attempt to connect that failed, and returns
// for how long the link is banned.
func (d withRescue) unreachable(l *linkState, err error) (pause time.Duration, again bool) {
	l.problem = err
	if isPermanent(err) {
		d.exclude(l, err)
		return 0, true
	}
	l.failures++
	if IsRefusal(err) {
		l.failures = max(l.failures, hopeless)
		d.goBack(l) // A captive portal may have led it there.
	}
	ban := l.ban()
	now := time.Since(d.start)
	d.record(now, &rundir.Ban{Link: l.Name, Error: err.Error(), Retry: ban.Nanoseconds()})
	d.Log.Info("link is banned", "link", l.Name, "error", err, "for", ban)
	if d.payload == nil && d.race == nil {
		for _, other := range d.links {
			if other.out == nil && (other.failures < hopeless || other.session != nil) {
				return ban, true
			}
		}
		d.cancel(d.outage(d.problems()))
	}
	return ban, true
}

// exclude uses the link no more.
func (d withRescue) exclude(l *linkState, err error) {
	now := time.Since(d.start)
	if l.first != nil {
		l = l.first
	}
	if l.out != nil {
		return
	}
	l.out = err
	for _, other := range d.lanes(l) {
		d.remove(other, now)
	}
	d.abandon(l, slices.Clone(l.active), excluded, now)
	for len(l.completing) > 0 {
		d.giveUpOn(l, l.completing[0], excluded, now)
	}
	if s := l.session; s != nil {
		l.session = nil
		d.close(l, s, false)
	}
	l.wake()
	if d.hasRanges() {
		d.Log.Warn("link is not used any more", "link", l.Name, "error", err)
		return
	}
	if d.payload != nil && slices.ContainsFunc(d.links, func(other *linkState) bool { return other.refused != nil }) {
		d.startRace(err)
		return
	}
	d.cancel(d.outage(d.problems()))
}

// failed leaves the link alone, connects it again, or excludes it, as the
// failure of the request deserves.
func (d withRescue) failed(l *linkState, s *session, err error) {
	now := time.Since(d.start)
	status, mismatch := new(transport.StatusError), new(transport.MismatchError)
	isStatus := errors.As(err, &status)
	waits := isStatus && status.Temporary()
	tooLong := waits && d.GiveUp > 0 && status.RetryAfter > d.GiveUp
	l.problem = err
	switch {
	case isDoubtful(err):
		d.doubt(l, s, err, now)
	case errors.Is(err, transport.ErrNoRanges) && d.payload == nil:
	case errors.Is(err, transport.ErrNoRanges) && (!d.ranged || l.failures >= mostWhole-1):
		d.startRace(err)
	case errors.Is(err, transport.ErrNoRanges):
		// One of several servers behind the name, most likely.
		d.oneTooMany(l, err, 0, now)
		d.despair(err, 0, now)
	case errors.As(err, &mismatch) && mismatch.SameSize:
		d.differs(l, s, mismatch, now)
	case errors.As(err, &mismatch), isPermanent(err):
		d.exclude(l, err)
	case waits && !tooLong:
		d.oneTooMany(l, err, status.RetryAfter, now)
		if d.isNoRange(l, status) {
			d.despair(err, leastDespair, now)
		}
	case isStatus && !waits && (s != l.session || s.draining):
		// An earlier one has told.
	case isStatus && !waits && l.url != d.URL && l.hops < d.maxHops():
		// What a redirect led to may have expired.
		l.url = d.URL
		l.hops++
		d.lose(l, s)
	case isStatus && d.hasOthers(l, waits):
		d.oneTooMany(l, err, 0, now)
	case tooLong:
		d.exclude(l, fmt.Errorf("%w, and asks to wait for %v", err, status.RetryAfter))
	case isStatus && d.payload != nil && transport.RefusesRanges(status.Code):
		d.refuse(l, err)
	case isStatus:
		d.exclude(l, err)
	default:
		// The requests of one session fail together.
		if s != l.session || s.draining {
			return
		}
		if !s.delivered || l.failures > 0 {
			l.failures++
			l.notBefore = now + l.ban()
		}
		s.delivered = false
		if !s.Usable() {
			l.broken()
			d.lose(l, s)
		}
	}
}

// hasOthers reports whether the link asks for something else meanwhile, on any of its
// connections, or, before the size is known, may get it there.
func (d withRescue) hasOthers(l *linkState, mayOpen bool) bool {
	return slices.ContainsFunc(d.lanes(l.link()), func(lane *linkState) bool {
		return len(lane.active) > 0 || mayOpen && lane.asking != nil
	})
}

// oneTooMany takes a refusal for one of so many requests at a time, and not of
// the file: others of the link are still served. The last one is believed, and left
// alone for at least so long.
func (d withRescue) oneTooMany(l *linkState, err error, least, now time.Duration) {
	if l.first == nil || len(l.active) > 0 {
		d.rest(l, err, least, now)
		return
	}
	l.first.growth.Lost()
	d.remove(l, now)
}

// rest leaves the link alone for as long as its failures tell, and at least
// for so long.
func (d withRescue) rest(l *linkState, err error, least, now time.Duration) {
	l.failures++
	d.pause(l, err, max(least, l.ban()), now)
}

// pause leaves the link alone for so long.
func (d withRescue) pause(l *linkState, err error, pause, now time.Duration) {
	l.notBefore = now + pause
	d.record(now, &rundir.Ban{Link: l.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
}

// changed takes note of what the link's device reports.
func (d withRescue) changed(l *linkState, c link.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Log.Info("link changed", "link", l.Name, "change", c)
	switch c {
	case link.Down:
		// Its work is not taken away before it was silent for long: that would
		// be wasted at every handover.
		for _, lane := range d.lanes(l) {
			lane.down, lane.downSince = true, time.Since(d.start)
		}
		l.problem = errors.New("the device has no carrier")
	case link.Up:
		l.failures = 0
		l.answers = true
		for _, lane := range d.lanes(l) {
			lane.down = false
			for _, s := range lane.sessions() {
				s.heardAt = time.Since(d.start)
			}
		}
		notify(l.hurry)
		l.wake()
	case link.Better:
		if l.needsSession() {
			l.failures = 0
			notify(l.hurry)
			l.wake()
		} else {
			return
		}
	}
	l.abandonAttempt()
	d.assign()
}
