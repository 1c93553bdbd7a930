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
	// maxStale is how many bytes of a cancelled body still arrive at most: the server's send
	// queue.
	maxStale = 1 << 20

	// A connection is silent when nothing arrived for transfer.SilentTrips round trips, and not
	// for transfer.LeastSilence, or for firstSilence if no present request has an answer yet.
	firstSilence = time.Second
	mostSilence  = 10 * time.Second

	// An attempt to connect may take transfer.AttemptTrips round trips and at least
	// leastAttempt, or firstAttempt while no round trip is known. Each next one may take longer.
	leastAttempt = 500 * time.Millisecond
	firstAttempt = 5 * time.Second
	mostAttempt  = 20 * time.Second
	// shortLife is the age up to which a session that the server closes without an answer has
	// failed. An older one was idle.
	shortLife = time.Second
	// longestPause is how long the client waits for bytes of the only answer of a URL.
	longestPause = 20 * time.Second
	// hopeless is how often every link must fail to connect at the beginning before the
	// download fails.
	hopeless = 3
	// mostWhole is how often a server that served ranges may answer with the whole file before
	// the client requests no more ranges.
	mostWhole = 4

	// trial is the largest request of a link that failed, until bytes arrive again.
	trial = 4 * schedule.MinimumRequest

	// A connection counts as slow when it was slow for slowTrips round trips and for leastSlow.
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

// withRescue is the policy with Rescue. It works with any server that sends files, and other links
// bring the bytes that one fails to bring. While bytes are missing, no link that could help is
// idle: it gets what the scheduler gives it, else free bytes, else bytes of the request that would
// end last.
type withRescue struct {
	view      view
	stealer   *stealer
	hedger    *hedger
	estimates *estimates
	monitor   *monitor
	refusals  *refusals
}

func (p withRescue) offer(c *tls.Config) *tls.Config { return c }

func (p withRescue) isMinimal() bool { return false }

// accept refuses nothing. Ranges need a validator or a checksum, which proves that they are of one
// file.
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

// due keeps enough bytes in flight, and lets a connection without a newest request ask again.
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

// next is what the reader waits for, else what the scheduler gives the link of the free bytes, at
// most its share, else bytes of another connection's request.
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
		if stolen := p.stealer.steal(c, works, now); stolen.Length > 0 {
			return stolen
		}
		return p.hedger.unanswered(c, now)
	}
	size := p.view.nextSize(c, now)
	share := schedule.Share(c.index, p.estimates.exceptLate(c.link, works), free)
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
