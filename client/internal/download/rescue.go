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
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

var errGoodbye = errors.New("the server says goodbye before it has answered")

const (
	// maxStale is how much of a cancelled body still arrives at most: the
	// server's send queue.
	maxStale = 1 << 20

	// A link is suspect when nothing arrived for transfer.LeastSilence, or for
	// firstSilence if nothing of the present requests has come yet, and not
	// for transfer.SilentTrips round trips.
	firstSilence = time.Second
	mostSilence  = 10 * time.Second

	// An attempt to connect may take transfer.AttemptTrips round trips, not less than
	// leastAttempt, or firstAttempt while none is known, and more each time.
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
	// out is why it is not used any more.
	out error
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
}

func newHealth() health {
	return health{need: make(chan struct{}, 1), hurry: make(chan struct{}, 1), abandonAttempt: func() {}}
}

// needsSession reports whether the link should be connected.
func (c *connection) needsSession() bool {
	return c.out == nil && !c.link.down && !c.link.spared && (c.session == nil || c.suspect || c.session.draining)
}

// alive reports whether nothing speaks against the link's session.
func (c *connection) alive() bool {
	return c.session != nil && !c.session.draining && c.out == nil && !c.suspect
}

// sessions are all that the link has.
func (c *connection) sessions() []*session {
	all := slices.Clone(c.completing)
	if c.session != nil {
		all = append(all, c.session)
	}
	return all
}

// usable reports whether the link can take requests.
func (c *connection) usable(now time.Duration) bool {
	return c.alive() && !c.link.down && !c.link.spared && now >= c.notBefore && c.link.refused == nil
}

// interrupted reports whether the link has no carrier since so short a time
// that it may go on at any moment, as after a handover. One that has nothing to
// deliver is not noticed to be silent.
func (c *connection) interrupted(now time.Duration) bool {
	return c.alive() && c.link.down && !c.link.spared && now-c.link.downSince <= c.silence(c.session)
}

// wake lets keep look at the link.
func (c *connection) wake() { notify(c.need) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits until it is time, or worth it, to try again.
func (c *connection) pause(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-c.hurry:
	}
}

// recovered says that bytes arrived.
func (c *connection) recovered() {
	c.failures, c.hops, c.link.portal = 0, 0, false
	if c.suspect && !c.link.down {
		c.suspect = false
		c.abandonAttempt()
	}
}

func (c *connection) attemptTimeout() time.Duration {
	least := firstAttempt
	if c.rtt.Last > 0 {
		least = max(leastAttempt, transfer.AttemptTrips*c.rtt.Last)
	}
	return transfer.Doubled(least, c.failures, mostAttempt)
}

// betweenAttempts is how long a connection of several waits for an answer at first
// until it asks again, where nothing came any more: half a round trip, with the
// queue that there was. Else it is 0.
func (c *connection) betweenAttempts() time.Duration {
	if !c.link.HasSeveral() || !c.suspect {
		return 0
	}
	if c.rtt.Last == 0 {
		return transfer.LeastBackoff
	}
	return max(transfer.CheckInterval, c.rtt.Last/2)
}

// silence is how long nothing may arrive on a session.
func (c *connection) silence(s *session) time.Duration {
	least := max(firstSilence, 2*c.delay())
	for _, r := range c.on(s) {
		if r.received > 0 {
			least = transfer.LeastSilence
		}
	}
	return transfer.Doubled(transfer.Silence(least, c.rtt.Last), c.failures, transfer.Silence(mostSilence, c.rtt.Last))
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
		d.wg.Go(func() { l.Watch(ctx, func(change link.Change) { d.changed(l, change) }) })
	}
}

func (d withRescue) supervise(ctx context.Context) {
	d.wg.Go(func() { d.look(ctx) })
}

func (withRescue) timed() bool { return true }

// due keeps the link at work, and lets one that had nothing to do ask again.
func (d withRescue) due(c *connection, r *request, now time.Duration) bool {
	if c.newest == nil {
		return r.complete()
	}
	return d.overlapped(c, r) || c.expected < c.pipe(now)
}

func (withRescue) eager() bool { return false }

func (withRescue) begin() {}

func (withRescue) tend(time.Duration) {}

func (d withRescue) ahead(c *connection) quantity.Bytes { return c.pipe(time.Since(d.start)) }

func (d withRescue) lost(c *connection, bytes quantity.Bytes, now time.Duration) {
	d.failedOver(c, nil, bytes, lost, now)
}

func (d withRescue) freed() { d.assign() }

// look looks at all links at regular times.
func (d withRescue) look(ctx context.Context) {
	regularly.Do(ctx, transfer.CheckInterval, func() {
		d.mu.Lock()
		now := time.Since(d.start)
		for _, c := range d.connections {
			d.check(c, now)
		}
		d.rate(now)
		d.askAgain(now)
		if d.race != nil {
			d.dethrone(now)
			for _, c := range d.connections {
				if c.usable(now) {
					d.enter(c)
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
	for _, c := range d.connections {
		if c.asking != c.session {
			c.asking = nil
		}
	}
	for _, c := range d.connections {
		if c.usable(now) && !d.isAsked() {
			d.proceed(c)
		}
	}
}

// check finds out whether the link's sessions still work.
func (d withRescue) check(c *connection, now time.Duration) {
	for _, s := range slices.Clone(c.completing) {
		if d.listen(c, s, now); c.isDead(s, now) {
			d.giveUpOn(c, s, stalled, now)
		}
	}
	s := c.session
	if s == nil || c.out != nil {
		return
	}
	// Without requests it is what others were cancelled for.
	if d.listen(c, s, now) && c.suspect && !c.link.down && len(c.on(s)) > 0 {
		c.suspect = false
		c.abandonAttempt()
	}
	switch {
	case !s.draining && !s.Usable():
		if !s.delivered && now-s.since < shortLife && now >= c.notBefore {
			c.failures++
			c.notBefore = now + transfer.Backoff(c.failures)
			c.problem = errGoodbye
			if ended := s.Ended(); ended != nil {
				c.problem = fmt.Errorf("%w: %w", errGoodbye, ended)
			}
			c.broken()
		}
		d.lose(c, s)
	case !c.suspect && c.isDead(s, now):
		c.suspect = true
		c.failures++
		c.problem = fmt.Errorf("nothing arrived for %v", (now - s.heardAt).Round(time.Millisecond))
		s.wait = wait{}
		d.Log.Info("link is silent", "link", c.link.Name)
		c.asking, c.head = nil, nil
		c.wake()
	}
}

// listen takes note of what a session received. It is not silent while nothing
// is awaited of it, or it is not read.
func (d withRescue) listen(c *connection, s *session, now time.Duration) (heard bool) {
	received := s.Received()
	heard = received != s.heard
	awaited := len(c.on(s)) > 0 || c.asking == s || d.race.on(c, s)
	switch {
	case heard:
		s.lateAt = now
	case !awaited && now-s.lateAt > c.silence(s):
		s.stale = s.Unread() // The server had not sent the rest yet.
	}
	switch {
	case heard && s.wait.since > 0:
		// The answer of the other end, or the beginning of the server's.
		s.heard, s.wait.there = received, now
	case heard || !awaited || s.Held() || d.race.waits(c):
		s.heard, s.heardAt, s.wait = received, now, wait{}
	}
	return heard
}

// rate finds out which links are slow.
func (d withRescue) rate(now time.Duration) {
	works := d.merged(d.measured(now), now)
	for _, c := range d.connections {
		switch {
		case len(c.active) == 0 || !schedule.Slow(c.link.index, works):
			c.slowSince = 0
		case c.slowSince == 0:
			c.slowSince = now
		}
	}
}

// onTrial reports whether the link failed, and nothing has come since.
func (c *connection) onTrial() bool { return c.link.failovers > 0 && c.pace.Total() == 0 }

// patience is how long a request that was just sent is left to the link.
func (c *connection) patience() time.Duration { return max(leastSlow, 2*c.delay()) }

// isSlow reports whether the link is slow for longer than by chance.
func (c *connection) isSlow(now time.Duration) bool {
	return c.slowSince > 0 && now-c.slowSince >= max(leastSlow, slowTrips*c.rtt.Min)
}

// works is what the links have to do, as far as it is known.
func (d withRescue) works(now time.Duration) []schedule.Work {
	works := d.measured(now)
	transfer.GuessRates(works, func(x int) (isFresh bool, bandwidth, shown quantity.Rate) {
		c := d.connections[x]
		if c.isFirst() {
			shown = c.link.Shown.Rate()
		}
		return c.isFresh(), c.link.Bandwidth, shown
	})
	return works
}

// isFresh reports whether the link does nothing by which its rate could be
// known.
func (c *connection) isFresh() bool { return len(c.active) == 0 || c.pace.Total() == 0 }

// measured is what the links have to do, and how fast they have been.
func (d withRescue) measured(now time.Duration) []schedule.Work {
	works := cleared(&d.scratch.works, len(d.connections))
	for x, c := range d.connections {
		w := &works[x]
		*w = schedule.Work{
			Usable:    c.usable(now) || c.interrupted(now),
			Left:      c.expected,
			Delay:     c.idle(),
			RTT:       c.rtt.Min,
			Arrived:   c.pace.Total(),
			Bandwidth: c.link.Bandwidth,
		}
		if c.session == nil || c.suspect {
			continue
		}
		w.Left += max(0, c.session.stale-c.session.Unread())
		for _, r := range c.active {
			// The server sends one after the other, or so it may.
			w.Left += w.Tail
			w.Tail = r.tail()
		}
		w.Rate = c.pace.Rate(now)
		if d.window != nil && len(c.active) == 0 && now-c.session.lateAt > firstSilence {
			w.Rate = 0 // What it was when it was left to others does not keep them from it for ever.
		}
		if kept := c.session.hole.kept; kept > 0 {
			w.Left = max(min(w.Left, schedule.SegmentSize), w.Left-kept)
		}
	}
	return works
}

// next is what a sink waits for, else what the scheduler gives the link of
// what nobody has begun, at most its share, else a part of what another link
// has to deliver.
func (d withRescue) next(c *connection, now time.Duration) (r ranges.Range, from string, ok bool) {
	if !c.usable(now) {
		return r, "", false
	}
	before := d.requests
	if r, from, ok = d.urgent(c, now); ok || d.requests > before {
		return r, from, ok
	}
	works := d.works(now)
	free := d.payload.Free(d.limit())
	if free == 0 {
		return d.steal(c, works, now)
	}
	size := d.nextSize(c, now)
	share := schedule.Share(c.index, works, free)
	if size <= 0 || c.link.takesLong {
		size = share
	}
	size = min(max(size, c.pipe(now)), share)
	if c.onTrial() {
		size = min(size, trial)
	}
	if size < schedule.MinimumRequest {
		if !schedule.Largest(c.index, works, free) {
			return r, "", false
		}
		size = schedule.MinimumRequest
	}
	r, ok = d.payload.Take(size, d.limit())
	return r, "", ok
}

// urgent takes what a sink needs next from a link that keeps it waiting.
func (d withRescue) urgent(c *connection, now time.Duration) (ranges.Range, string, bool) {
	if d.window == nil {
		return ranges.Range{}, "", false
	}
	first := d.payload.Missing().Offset
	for _, other := range d.connections {
		reason := ""
		switch {
		case other == c:
		case other.suspect || other.link.down:
			reason = stalled
		case other.isSlow(now) && !c.isSlow(now):
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
				(reason != slow || d.isSooner(c, r, now)) {
				if reason == slow && r.isHedgeable() {
					d.hedge(c, other, r, now)
					return ranges.Range{}, "", false
				}
				left := d.drop(other, r, now)
				d.failedOver(other, c, left.Length, reason, now)
				return left, other.link.Name, true
			}
		}
	}
	return ranges.Range{}, "", false
}

// isSooner reports whether a connection brings the rest of another one's request
// sooner than that one does, by what has come there since it was sent, and sooner than
// a reader would miss it.
func (d withRescue) isSooner(c *connection, r *request, now time.Duration) bool {
	came, due := r.coming()
	late := schedule.Work{Rate: came.Per(now - r.issued), Left: due}
	end, thief := late.Late(true), d.works(now)[c.index]
	return end >= d.waits && thief.Rate > 0 && thief.Sooner(r.left(), end)
}

// unreachable takes note of an attempt to connect that failed, and returns
// for how long it backs off.
func (d withRescue) unreachable(c *connection, err error) (pause time.Duration, again bool) {
	c.problem = err
	if transfer.IsPermanent(err) {
		d.exclude(c, err)
		return 0, true
	}
	c.failures++
	if transfer.IsRefusal(err) {
		c.failures = max(c.failures, hopeless)
		d.goBack(c) // A captive portal may have led it there.
	}
	pause = transfer.Backoff(c.failures)
	now := time.Since(d.start)
	d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
	d.Log.Info("link backs off", "link", c.link.Name, "error", err, "for", pause)
	if d.payload == nil && d.race == nil {
		for _, other := range d.connections {
			if other.out == nil && (other.failures < hopeless || other.session != nil) {
				return pause, true
			}
		}
		d.cancel(d.outage(d.problems()))
	}
	return pause, true
}

// exclude uses the link no more.
func (d withRescue) exclude(c *connection, err error) {
	now := time.Since(d.start)
	c = c.link.first()
	if c.out != nil {
		return
	}
	c.out = err
	for _, other := range c.link.connections {
		d.remove(other, now)
	}
	d.abandon(c, slices.Clone(c.active), excluded, now)
	for len(c.completing) > 0 {
		d.giveUpOn(c, c.completing[0], excluded, now)
	}
	if s := c.session; s != nil {
		c.session = nil
		d.close(c, s, false)
	}
	c.wake()
	if d.hasRanges() {
		d.Log.Warn("link is not used any more", "link", c.link.Name, "error", err)
		return
	}
	if d.payload != nil && slices.ContainsFunc(d.connections, func(other *connection) bool { return other.link.refused != nil }) {
		d.startRace(err)
		return
	}
	d.cancel(d.outage(d.problems()))
}

// failed leaves the link alone, connects it again, or excludes it, as the
// failure of the request deserves.
func (d withRescue) failed(c *connection, s *session, err error) {
	now := time.Since(d.start)
	status, mismatch := new(transport.StatusError), new(transport.MismatchError)
	isStatus := errors.As(err, &status)
	waits := isStatus && status.Temporary()
	tooLong := waits && d.GiveUp > 0 && status.RetryAfter > d.GiveUp
	c.problem = err
	switch {
	case isDoubtful(err):
		d.doubt(c, s, err, now)
	case errors.Is(err, transport.ErrNoRanges) && d.payload == nil:
	case errors.Is(err, transport.ErrNoRanges) && (!d.ranged || c.failures >= mostWhole-1):
		d.startRace(err)
	case errors.Is(err, transport.ErrNoRanges):
		// One of several servers behind the name, most likely.
		d.oneTooMany(c, err, 0, now)
		d.despair(err, 0, now)
	case errors.As(err, &mismatch) && mismatch.SameSize:
		d.differs(c, s, mismatch, now)
	case errors.As(err, &mismatch), transfer.IsPermanent(err):
		d.exclude(c, err)
	case waits && !tooLong:
		d.oneTooMany(c, err, status.RetryAfter, now)
		if d.isNoRange(c, status) {
			d.despair(err, leastDespair, now)
		}
	case isStatus && !waits && (s != c.session || s.draining):
		// An earlier one has told.
	case isStatus && !waits && c.url != d.URL && c.hops < d.maxHops():
		// What a redirect led to may have expired.
		c.url = d.URL
		c.hops++
		d.lose(c, s)
	case isStatus && d.hasOthers(c, waits):
		d.oneTooMany(c, err, 0, now)
	case tooLong:
		d.exclude(c, fmt.Errorf("%w, and asks to wait for %v", err, status.RetryAfter))
	case isStatus && d.payload != nil && transport.RefusesRanges(status.Code):
		d.refuse(c.link, err)
	case isStatus:
		d.exclude(c, err)
	default:
		// The requests of one session fail together.
		if s != c.session || s.draining {
			return
		}
		if !s.delivered || c.failures > 0 {
			c.failures++
			c.notBefore = now + transfer.Backoff(c.failures)
		}
		s.delivered = false
		if !s.Usable() {
			c.broken()
			d.lose(c, s)
		}
	}
}

// hasOthers reports whether the link asks for something else meanwhile, on any of its
// connections, or, before the size is known, may get it there.
func (d withRescue) hasOthers(c *connection, mayOpen bool) bool {
	return slices.ContainsFunc(c.link.connections, func(one *connection) bool {
		return len(one.active) > 0 || mayOpen && one.asking != nil
	})
}

// oneTooMany takes a refusal for one of so many requests at a time, and not of
// the file: others of the link are still served. The last one is believed, and left
// alone for at least so long.
func (d withRescue) oneTooMany(c *connection, err error, least, now time.Duration) {
	if c.isFirst() || len(c.active) > 0 {
		d.rest(c, err, least, now)
		return
	}
	c.link.Growth.Lost()
	d.remove(c, now)
}

// rest leaves the link alone for as long as its failures tell, and at least
// for so long.
func (d withRescue) rest(c *connection, err error, least, now time.Duration) {
	c.failures++
	d.pause(c, err, max(least, transfer.Backoff(c.failures)), now)
}

// pause leaves the link alone for so long.
func (d withRescue) pause(c *connection, err error, pause, now time.Duration) {
	c.notBefore = now + pause
	d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
}

// changed takes note of what the link's device reports.
func (d withRescue) changed(l *linkState, change link.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Log.Info("link changed", "link", l.Name, "change", change)
	c := l.first()
	switch change {
	case link.Down:
		// Its work is not taken away before it was silent for long: that would
		// be wasted at every handover.
		l.down, l.downSince = true, time.Since(d.start)
		c.problem = errors.New("the device has no carrier")
	case link.Up:
		c.failures = 0
		l.answers, l.down = true, false
		for _, one := range l.connections {
			for _, s := range one.sessions() {
				s.heardAt = time.Since(d.start)
			}
		}
		notify(c.hurry)
		c.wake()
	case link.Better:
		if c.needsSession() {
			c.failures = 0
			notify(c.hurry)
			c.wake()
		} else {
			return
		}
	}
	c.abandonAttempt()
	d.assign()
}
