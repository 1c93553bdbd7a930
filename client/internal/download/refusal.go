package download

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// refusals decides what follows from failures and refusals.
type refusals struct{ d *download }

// hasOthers reports whether other requests of the link are in flight. With mayOpen, questions about
// the file count, too.
func (rf *refusals) hasOthers(c *connection, mayOpen bool) bool {
	return slices.ContainsFunc(c.link.connections, func(one *connection) bool {
		return len(one.active) > 0 || mayOpen && one.asking != nil
	})
}

// oneTooMany reacts to a refusal while the server still serves other requests of the link: the
// server may refuse so many at a time. It removes a further connection. The link's first one backs
// off, at least for the time least.
func (rf *refusals) oneTooMany(c *connection, err error, least, now time.Duration) {
	if c.isFirst() || len(c.active) > 0 {
		rf.backOff(c, err, least, now)
		return
	}
	c.link.Growth.Lost()
	rf.d.closer.remove(c, now)
}

// backOff makes the connection wait: longer with each failure, and at least for the time least.
func (rf *refusals) backOff(c *connection, err error, least, now time.Duration) {
	c.failures++
	rf.pause(c, err, max(least, transfer.Backoff(c.failures)), now)
}

// pause makes the connection wait for so long.
func (rf *refusals) pause(c *connection, err error, pause, now time.Duration) {
	c.notBefore = now + pause
	rf.d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
}

// unreachable notes an attempt to connect that failed, and returns the pause until the next one.
func (rf *refusals) unreachable(c *connection, err error) (pause time.Duration) {
	c.problem = err
	if transfer.IsPermanent(err) {
		rf.exclude(c, err)
		return 0
	}
	c.failures++
	if transfer.IsRefusal(err) {
		c.failures = max(c.failures, hopeless)
		rf.goBack(c) // A captive portal may have redirected it there.
	}
	pause = transfer.Backoff(c.failures)
	now := time.Since(rf.d.start)
	rf.d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
	rf.d.Log.Info("link backs off", "link", c.link.Name, "error", err, "for", pause)
	if rf.d.payload == nil && rf.d.race == nil {
		for _, other := range rf.d.connections {
			if other.out == nil && (other.failures < hopeless || other.session != nil) {
				return pause
			}
		}
		rf.d.cancel(rf.d.watchdog.problems())
	}
	return pause
}

// exclude stops using the connection's link.
func (rf *refusals) exclude(c *connection, err error) {
	now := time.Since(rf.d.start)
	c = c.link.first()
	if c.out != nil {
		return
	}
	c.out = err
	for _, other := range c.link.connections {
		rf.d.closer.remove(other, now)
	}
	rf.d.closer.abandon(c, slices.Clone(c.active), excluded, now)
	for len(c.completing) > 0 {
		rf.d.closer.giveUpOn(c, c.completing[0], excluded, now)
	}
	if s := c.session; s != nil {
		c.session = nil
		rf.d.closer.close(c, s, false)
	}
	c.wake()
	if rf.d.hasRanges() {
		rf.d.Log.Warn("link is not used any more", "link", c.link.Name, "error", err)
		return
	}
	if rf.d.payload != nil && slices.ContainsFunc(rf.d.connections, func(other *connection) bool { return other.link.refused != nil }) {
		rf.d.startRace(err)
		return
	}
	rf.d.cancel(rf.d.watchdog.problems())
}

// isUsedUp reports whether an error may mean that the URL works only once: the first answer goes on or may still come,
// no second request was answered, and the server refused or redirected this one.
func (rf *refusals) isUsedUp(c *connection, err error) bool {
	goesOn, awaited := rf.onlyAnswer()
	if !goesOn && !awaited {
		return false
	}
	status, mismatch := new(transport.StatusError), new(transport.MismatchError)
	isSame := awaited || c.url.String() == rf.d.origin.url.String()
	switch {
	case errors.As(err, &status):
		return isSame && !status.Temporary()
	case errors.As(err, &mismatch):
		return !mismatch.SameSize
	case errors.As(err, new(*transport.RedirectError)):
		return isSame
	}
	return isDoubtful(err) || errors.Is(err, transport.ErrNoRanges)
}

// onlyAnswer reports whether an answer that may be the URL's only one goes on, or may still come.
func (rf *refusals) onlyAnswer() (goesOn, isAwaited bool) {
	goesOn = slices.ContainsFunc(rf.d.connections, func(c *connection) bool {
		return slices.ContainsFunc(c.active, rf.d.fetcher.isOnly)
	})
	return goesOn, rf.d.payload == nil && rf.d.race == nil && !rf.d.repeats && rf.d.asker.awaitsWhole(nil)
}

// restore lets refused links ask again when there is no such answer any more.
func (rf *refusals) restore() {
	if goesOn, isAwaited := rf.onlyAnswer(); goesOn || isAwaited {
		return
	}
	for _, l := range rf.d.links {
		l.isSpent = false
	}
}

// spend makes the link request nothing while the only answer goes on.
func (rf *refusals) spend(c *connection, err error) {
	c.problem, c.link.isSpent = err, true
	if !c.isFirst() && c.whole() == nil && (c.session == nil || !rf.d.asker.awaitsWhole(c.session)) {
		rf.d.closer.remove(c, time.Since(rf.d.start))
	}
	rf.d.fetcher.goOn()
}

// failed decides by the failure of a request: the connection backs off or connects again, or the
// link is excluded.
func (rf *refusals) failed(c *connection, s *session, err error) {
	now := time.Since(rf.d.start)
	status, mismatch := new(transport.StatusError), new(transport.MismatchError)
	isStatus := errors.As(err, &status)
	waits := isStatus && status.Temporary()
	tooLong := waits && rf.d.GiveUp > 0 && status.RetryAfter > rf.d.GiveUp
	c.problem = err
	switch {
	case isDoubtful(err):
		rf.doubt(c, s, err, now)
	case errors.Is(err, transport.ErrNoRanges) && rf.d.payload == nil:
	case errors.Is(err, transport.ErrNoRanges) && (!rf.d.ranged || c.failures >= mostWhole-1):
		rf.d.startRace(err)
	case errors.Is(err, transport.ErrNoRanges):
		// Most likely it is one of several servers behind the name.
		rf.oneTooMany(c, err, 0, now)
		rf.countUnranged(err, 0, now)
	case errors.As(err, &mismatch) && mismatch.SameSize:
		rf.differs(c, s, mismatch, now)
	case errors.As(err, &mismatch), transfer.IsPermanent(err):
		rf.exclude(c, err)
	case waits && !tooLong:
		rf.oneTooMany(c, err, status.RetryAfter, now)
		if rf.isNoRange(c, status) {
			rf.countUnranged(err, unrangedPatience, now)
		}
	case isStatus && !waits && (s != c.session || s.draining):
		// An earlier failure of this session has decided.
	case isStatus && !waits && c.url != rf.d.URL && c.hops < rf.d.maxHops():
		// The target of the redirect may have expired.
		c.url = rf.d.URL
		c.hops++
		rf.d.closer.lose(c, s)
	case isStatus && rf.hasOthers(c, waits):
		rf.oneTooMany(c, err, 0, now)
	case tooLong:
		rf.exclude(c, fmt.Errorf("%w, and asks to wait for %v", err, status.RetryAfter))
	case isStatus && rf.d.payload != nil && transport.RefusesRanges(status.Code):
		rf.refuse(c.link, err)
	case isStatus:
		rf.exclude(c, err)
	default:
		// All requests of a session fail together: the first one decides.
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
			rf.d.closer.lose(c, s)
		}
	}
}
