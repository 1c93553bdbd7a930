package download

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/schedule"
)

var errGoodbye = errors.New("the server says goodbye before it has answered")

// look finds out which connections work, and gives idle ones work.
func (d *download) look(now time.Duration) {
	for _, c := range d.connections {
		d.check(c, now)
	}
	d.restore()
	d.findSlow(now)
	d.askAgain(now)
	if d.race != nil {
		d.race.dethrone(now)
		for _, c := range d.connections {
			if c.usable(now) {
				d.race.enter(c)
			}
		}
	}
	d.maintain(now)
	d.assign()
	d.giveUp(now)
}

// askAgain makes connections ask what the URL stands for, unless one asks on its present session:
// an older session may never answer.
func (d *download) askAgain(now time.Duration) {
	if d.payload != nil || d.race != nil {
		return
	}
	for _, c := range d.connections {
		if c.asking != c.session {
			c.asking = nil
		}
	}
	for _, c := range d.connections {
		switch {
		case !c.usable(now) || d.isAsked():
		case d.isQuestionUnanswered(c, now):
			d.startAsking(c, c.session)
		default:
			d.proceed(c)
		}
	}
}

// check finds out whether the connection's sessions still work.
func (d *download) check(c *connection, now time.Duration) {
	for _, s := range slices.Clone(c.completing) {
		if d.listen(c, s, now); d.isDead(c, s, now) && !d.hasOnly(c, s) {
			d.giveUpOn(c, s, stalled, now)
		}
	}
	s := c.session
	if s == nil || c.out != nil {
		return
	}
	// Without requests, the bytes may be of a cancelled one.
	if d.listen(c, s, now) && len(c.on(s)) > 0 {
		d.trust(c)
	}
	switch {
	case !s.draining && !s.Usable():
		if !s.delivered && now-s.since < shortLife && now >= c.notBefore {
			c.fails(now)
			c.problem = errGoodbye
			if ended := s.Ended(); ended != nil {
				c.problem = fmt.Errorf("%w: %w", errGoodbye, ended)
			}
			c.broken()
		}
		d.lose(c, s)
	case !c.suspect && (d.isDead(c, s, now) || c.isStuck(now)):
		c.suspect = true
		c.failures++
		c.problem = fmt.Errorf("nothing arrived for %v", (now - s.heardAt).Round(time.Millisecond))
		s.wait = wait{}
		d.note(slog.LevelInfo, "link is silent", "link", c.link.Name)
		c.asking, c.head = nil, nil
	}
}

// listen notes how many bytes a session received, and reports whether there are new ones. A
// session is not silent while nothing is expected of it, or while the engine does not read it.
func (d *download) listen(c *connection, s *session, now time.Duration) (heard bool) {
	received := s.Received()
	heard = received != s.heard
	awaited := slices.ContainsFunc(c.on(s), (*request).isAwaited) || c.asking == s || d.race.on(c, s)
	switch {
	case heard:
		s.lateAt = now
	case !awaited && now-s.lateAt > c.silence(s):
		s.stale = s.Unread() // The server stopped before it sent the rest.
	}
	switch {
	case heard && s.wait.since > 0:
		// The other end's TCP or HTTP/2 answered, or the server's answer begins.
		s.heard, s.wait.there = received, now
	case heard || !awaited || s.Held() || d.race.waits(c):
		s.heard, s.heardAt, s.wait = received, now, wait{}
	}
	return heard
}

func (d *download) findSlow(now time.Duration) {
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

// changed is a change of a link's device.
type changed struct {
	l    *linkState
	what link.Change
}

func (e changed) step(d *download) {
	l := e.l
	d.note(slog.LevelInfo, "link changed", "link", l.Name, "change", e.what)
	c := l.first()
	switch e.what {
	case link.Down:
		// The link keeps its work until it was silent for long. Else each handover would waste bytes.
		l.down, l.downSince = true, d.now
		c.problem = errors.New("the device has no carrier")
	case link.Up:
		c.failures = 0
		l.answers, l.down = true, false
		for _, one := range l.connections {
			for _, s := range one.sessions() {
				s.heardAt = d.now
			}
		}
		d.skipPause(c)
	case link.Better:
		if !c.needsSession() {
			return
		}
		c.failures = 0
		d.skipPause(c)
	}
	d.abandonAttempt(c)
	d.assign()
}
