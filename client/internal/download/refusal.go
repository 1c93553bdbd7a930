package download

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// hasOthers reports whether other requests of the link are in flight. With mayOpen, questions about
// the file count, too.
func (d *download) hasOthers(c *connection, mayOpen bool) bool {
	return slices.ContainsFunc(c.link.connections, func(one *connection) bool {
		return len(one.active) > 0 || mayOpen && one.asking != nil
	})
}

// oneTooMany reacts to a refusal while the server still serves other requests of the link: the server may refuse so
// many at a time. It removes a further connection. The link's first one backs off, at least for the time least.
func (d *download) oneTooMany(c *connection, err error, least, now time.Duration) {
	if c.isFirst() || len(c.active) > 0 {
		d.backOff(c, err, least, now)
		return
	}
	c.link.Growth.Lost()
	d.remove(c, now)
}

// backOff makes the connection wait: longer with each failure, and at least for the time least.
func (d *download) backOff(c *connection, err error, least, now time.Duration) {
	c.failures++
	d.pause(c, err, max(least, transfer.Backoff(c.failures)), now)
}

// pause makes the connection wait for so long.
func (d *download) pause(c *connection, err error, pause, now time.Duration) {
	c.notBefore = now + pause
	d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
}

// unreachable notes an attempt to connect that failed, and returns the pause until the next one.
func (d *download) unreachable(c *connection, err error) (pause time.Duration) {
	c.problem = err
	if transfer.IsPermanent(err) {
		d.exclude(c, err)
		return 0
	}
	c.failures++
	if transfer.IsRefusal(err) {
		c.failures = max(c.failures, hopeless)
		d.goBack(c) // A captive portal may have redirected it there.
	}
	pause = transfer.Backoff(c.failures)
	now := d.now
	d.record(now, &rundir.Ban{Link: c.link.Name, Error: err.Error(), Retry: pause.Nanoseconds()})
	d.note(slog.LevelInfo, "link backs off", "link", c.link.Name, "error", err, "for", pause)
	if d.payload == nil && d.race == nil {
		for _, other := range d.connections {
			if other.out == nil && (other.failures < hopeless || other.session != nil) {
				return pause
			}
		}
		d.finish(d.problems())
	}
	return pause
}

// exclude stops using the connection's link.
func (d *download) exclude(c *connection, err error) {
	now := d.now
	c = c.link.first()
	if c.out != nil {
		return
	}
	c.out = err
	for _, other := range c.link.connections {
		d.remove(other, now)
	}
	d.disconnect(c, excluded, now)
	if d.hasRanges() {
		d.note(slog.LevelWarn, "link is not used any more", "link", c.link.Name, "error", err)
		return
	}
	if d.payload != nil && slices.ContainsFunc(d.connections, func(other *connection) bool { return other.link.refused != nil }) {
		d.startRace(err)
		return
	}
	d.finish(d.problems())
}

// isUsedUp reports whether an error may mean that the URL works only once: the first answer goes on or may still come,
// no second request was answered, and the server refused or redirected this one.
func (d *download) isUsedUp(c *connection, err error) bool {
	goesOn, awaited := d.onlyAnswer()
	if !goesOn && !awaited {
		return false
	}
	status, mismatch := new(transport.StatusError), new(transport.MismatchError)
	isSame := awaited || c.url.String() == d.origin.url.String()
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
func (d *download) onlyAnswer() (goesOn, isAwaited bool) {
	goesOn = slices.ContainsFunc(d.connections, func(c *connection) bool {
		return slices.ContainsFunc(c.active, d.isOnly)
	})
	return goesOn, d.payload == nil && d.race == nil && !d.repeats && d.awaitsWhole(nil)
}

// restore lets refused links ask again when there is no such answer any more.
func (d *download) restore() {
	if goesOn, isAwaited := d.onlyAnswer(); goesOn || isAwaited {
		return
	}
	for _, l := range d.links {
		l.isSpent = false
	}
}

// spend makes the link request nothing while the only answer goes on.
func (d *download) spend(c *connection, err error) {
	c.problem, c.link.isSpent = err, true
	if !c.isFirst() && c.whole() == nil && (c.session == nil || !d.awaitsWhole(c.session)) {
		d.remove(c, d.now)
	}
	d.goOn()
}

// failed decides by the failure of a request: the connection backs off or connects again, or the link is excluded.
func (d *download) failed(c *connection, s *session, err error) {
	now := d.now
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
		// Most likely it is one of several servers behind the name.
		d.oneTooMany(c, err, 0, now)
		d.countUnranged(err, 0, now)
	case errors.As(err, &mismatch) && mismatch.SameSize:
		d.differs(c, s, mismatch, now)
	case errors.As(err, &mismatch), transfer.IsPermanent(err):
		d.exclude(c, err)
	case waits && !tooLong:
		d.oneTooMany(c, err, status.RetryAfter, now)
		if d.isNoRange(c, status) {
			d.countUnranged(err, unrangedPatience, now)
		}
	case isStatus && !waits && (s != c.session || s.draining):
		// An earlier failure of this session has decided.
	case isStatus && !waits && c.url != d.URL && c.hops < d.maxHops():
		// The target of the redirect may have expired.
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
		// All requests of a session fail together: the first one decides.
		if s != c.session || s.draining {
			return
		}
		if !s.delivered || c.failures > 0 {
			c.fails(now)
		}
		s.delivered = false
		if !s.Usable() {
			c.broken()
			d.lose(c, s)
		}
	}
}
