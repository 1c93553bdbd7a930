package download

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
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
	// longestPause is how long the only answer of a URL is awaited while nothing of it comes.
	longestPause = 20 * time.Second
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
type withRescue struct {
	view      view
	stealer   *stealer
	estimates *estimates
	monitor   *monitor
	refusals  *refusals
}

func (p withRescue) offer(c *tls.Config) *tls.Config { return c }

func (p withRescue) isMinimal() bool { return false }

// accept refuses nothing. Ranges need a proof that they are of one file.
func (p withRescue) accept(r transport.Resource) (whole bool, err error) {
	return r.NoRanges || r.Size < 0 || !r.HasValidator() && !p.view.isVerified(), nil
}

func (p withRescue) watch(ctx context.Context, l *linkState) { p.monitor.watch(ctx, l) }

func (p withRescue) supervise(ctx context.Context) { p.monitor.supervise(ctx) }

func (p withRescue) unreachable(c *connection, err error) (time.Duration, bool) {
	return p.refusals.unreachable(c, err)
}

func (p withRescue) failed(c *connection, s *session, err error) { p.refusals.failed(c, s, err) }

func (p withRescue) exclude(c *connection, err error) { p.refusals.exclude(c, err) }

func (p withRescue) timed() bool { return true }

// due keeps the link at work, and lets one that had nothing to do ask again.
func (p withRescue) due(c *connection, r *request, now time.Duration) bool {
	if c.newest == nil {
		return r.complete()
	}
	return p.view.overlapped(c, r) || c.expected < c.pipe(now)
}

func (p withRescue) opensWithRange() bool { return false }

func (p withRescue) start() {}

func (p withRescue) maintain(time.Duration) {}

func (p withRescue) ahead(c *connection) quantity.Bytes { return c.pipe(p.view.now()) }

func (p withRescue) lost(c *connection, bytes quantity.Bytes, now time.Duration) {
	p.view.failedOver(c, nil, bytes, lost, now)
}

func (p withRescue) freed() { p.view.assign() }

// next is what a sink waits for, else what the scheduler gives the link of
// what nobody has begun, at most its share, else a part of what another link
// has to deliver.
func (p withRescue) next(c *connection, now time.Duration) order {
	if !c.usable(now) {
		return order{}
	}
	if urgent := p.stealer.urgent(c, now); urgent.Length > 0 {
		return urgent
	}
	works := p.estimates.works(now)
	free := p.view.free()
	if free == 0 {
		return p.stealer.steal(c, works, now)
	}
	size := p.view.nextSize(c, now)
	share := schedule.Share(c.index, works, free)
	if size <= 0 || c.link.isSlowToAnswer {
		size = share
	}
	size = min(max(size, c.pipe(now)), share)
	if c.onTrial() {
		size = min(size, trial)
	}
	if size < schedule.MinimumRequest {
		if !schedule.Largest(c.index, works, free) {
			return order{}
		}
		size = schedule.MinimumRequest
	}
	return p.view.take(size)
}
