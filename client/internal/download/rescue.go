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
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

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

// withRescue is the engine with Rescue: any server that sends files will do, and
// what one link fails to bring another one does. No link that could help is idle
// while bytes are missing: it gets what the scheduler gives it, else what others
// have not begun, else a part of what the slowest one has still to deliver.
type withRescue struct{ d *download }

func (p withRescue) offer(c *tls.Config) *tls.Config { return c }

func (p withRescue) bare() bool { return false }

// accept refuses nothing. Ranges need a proof that they are of one file.
func (p withRescue) accept(r transport.Resource) (whole bool, err error) {
	return r.NoRanges || r.Size < 0 || !r.HasValidator() && !p.d.Verified, nil
}

func (p withRescue) watch(ctx context.Context, l *linkState) {
	if l.Watch != nil {
		p.d.wg.Go(func() { l.Watch(ctx, func(change link.Change) { p.d.monitor.changed(l, change) }) })
	}
}

func (p withRescue) supervise(ctx context.Context) {
	p.d.wg.Go(func() { p.d.monitor.look(ctx) })
}

func (p withRescue) timed() bool { return true }

// due keeps the link at work, and lets one that had nothing to do ask again.
func (p withRescue) due(c *connection, r *request, now time.Duration) bool {
	if c.newest == nil {
		return r.complete()
	}
	return p.d.fetcher.overlapped(c, r) || c.expected < c.pipe(now)
}

func (p withRescue) eager() bool { return false }

func (p withRescue) start() {}

func (p withRescue) tend(time.Duration) {}

func (p withRescue) ahead(c *connection) quantity.Bytes { return c.pipe(time.Since(p.d.start)) }

func (p withRescue) lost(c *connection, bytes quantity.Bytes, now time.Duration) {
	p.d.fetcher.failedOver(c, nil, bytes, lost, now)
}

func (p withRescue) freed() { p.d.assign() }

// next is what a sink waits for, else what the scheduler gives the link of
// what nobody has begun, at most its share, else a part of what another link
// has to deliver.
func (p withRescue) next(c *connection, now time.Duration) (r ranges.Range, from string, ok bool) {
	if !c.usable(now) {
		return r, "", false
	}
	before := p.d.requests
	if r, from, ok = p.d.thief.urgent(c, now); ok || p.d.requests > before {
		return r, from, ok
	}
	works := p.d.estimates.works(now)
	free := p.d.payload.Free(p.d.limit())
	if free == 0 {
		return p.d.thief.steal(c, works, now)
	}
	size := p.d.nextSize(c, now)
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
	r, ok = p.d.payload.Take(size, p.d.limit())
	return r, "", ok
}

// unreachable takes note of an attempt to connect that failed, and returns
// for how long it backs off.
func (p withRescue) unreachable(c *connection, err error) (pause time.Duration, again bool) {
	c.problem = err
	if transfer.IsPermanent(err) {
		p.exclude(c, err)
		return 0, true
	}
	c.failures++
	if transfer.IsRefusal(err) {
		c.failures = max(c.failures, hopeless)
		p.d.refusals.goBack(c) // A captive portal may have led it there.
	}
	pause = transfer.Backoff(c.failures)
	now := time.Since(p.d.start)
	p.d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
	p.d.Log.Info("link backs off", "link", c.link.Name, "error", err, "for", pause)
	if p.d.payload == nil && p.d.race == nil {
		for _, other := range p.d.connections {
			if other.out == nil && (other.failures < hopeless || other.session != nil) {
				return pause, true
			}
		}
		p.d.cancel(p.d.watchdog.outage(p.d.watchdog.problems()))
	}
	return pause, true
}

// exclude uses the link no more.
func (p withRescue) exclude(c *connection, err error) {
	now := time.Since(p.d.start)
	c = c.link.first()
	if c.out != nil {
		return
	}
	c.out = err
	for _, other := range c.link.connections {
		p.d.keeper.remove(other, now)
	}
	p.d.keeper.abandon(c, slices.Clone(c.active), excluded, now)
	for len(c.completing) > 0 {
		p.d.keeper.giveUpOn(c, c.completing[0], excluded, now)
	}
	if s := c.session; s != nil {
		c.session = nil
		p.d.keeper.close(c, s, false)
	}
	c.wake()
	if p.d.hasRanges() {
		p.d.Log.Warn("link is not used any more", "link", c.link.Name, "error", err)
		return
	}
	if p.d.payload != nil && slices.ContainsFunc(p.d.connections, func(other *connection) bool { return other.link.refused != nil }) {
		p.d.startRace(err)
		return
	}
	p.d.cancel(p.d.watchdog.outage(p.d.watchdog.problems()))
}

// failed leaves the link alone, connects it again, or excludes it, as the
// failure of the request deserves.
func (p withRescue) failed(c *connection, s *session, err error) {
	now := time.Since(p.d.start)
	status, mismatch := new(transport.StatusError), new(transport.MismatchError)
	isStatus := errors.As(err, &status)
	waits := isStatus && status.Temporary()
	tooLong := waits && p.d.GiveUp > 0 && status.RetryAfter > p.d.GiveUp
	c.problem = err
	switch {
	case isDoubtful(err):
		p.d.refusals.doubt(c, s, err, now)
	case errors.Is(err, transport.ErrNoRanges) && p.d.payload == nil:
	case errors.Is(err, transport.ErrNoRanges) && (!p.d.ranged || c.failures >= mostWhole-1):
		p.d.startRace(err)
	case errors.Is(err, transport.ErrNoRanges):
		// One of several servers behind the name, most likely.
		p.d.refusals.oneTooMany(c, err, 0, now)
		p.d.refusals.despair(err, 0, now)
	case errors.As(err, &mismatch) && mismatch.SameSize:
		p.d.refusals.differs(c, s, mismatch, now)
	case errors.As(err, &mismatch), transfer.IsPermanent(err):
		p.exclude(c, err)
	case waits && !tooLong:
		p.d.refusals.oneTooMany(c, err, status.RetryAfter, now)
		if p.d.refusals.isNoRange(c, status) {
			p.d.refusals.despair(err, leastDespair, now)
		}
	case isStatus && !waits && (s != c.session || s.draining):
		// An earlier one has told.
	case isStatus && !waits && c.url != p.d.URL && c.hops < p.d.maxHops():
		// What a redirect led to may have expired.
		c.url = p.d.URL
		c.hops++
		p.d.keeper.lose(c, s)
	case isStatus && p.d.refusals.hasOthers(c, waits):
		p.d.refusals.oneTooMany(c, err, 0, now)
	case tooLong:
		p.exclude(c, fmt.Errorf("%w, and asks to wait for %v", err, status.RetryAfter))
	case isStatus && p.d.payload != nil && transport.RefusesRanges(status.Code):
		p.d.refusals.refuse(c.link, err)
	case isStatus:
		p.exclude(c, err)
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
			p.d.keeper.lose(c, s)
		}
	}
}
