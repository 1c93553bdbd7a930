package download

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

var errGoodbye = errors.New("the server says goodbye before it has answered")

// monitor finds out which connections still work.
type monitor struct{ d *download }

// watch follows the changes of the link's device until ctx ends.
func (m *monitor) watch(ctx context.Context, l *linkState) {
	if l.Watch != nil {
		m.d.wg.Go(func() { l.Watch(ctx, func(change link.Change) { m.changed(l, change) }) })
	}
}

// look finds out which connections work, and gives idle ones work.
func (m *monitor) look(now time.Duration) {
	for _, c := range m.d.connections {
		m.check(c, now)
	}
	m.d.refusals.restore()
	m.rate(now)
	m.askAgain(now)
	if m.d.race != nil {
		m.d.race.dethrone(now)
		for _, c := range m.d.connections {
			if c.usable(now) {
				m.d.race.enter(c)
			}
		}
	}
	m.d.grower.maintain(now)
	m.d.assign()
	m.d.watchdog.giveUp(now)
}

// askAgain makes connections ask what the URL stands for, unless one asks on its present session:
// an older session may never answer.
func (m *monitor) askAgain(now time.Duration) {
	if m.d.payload != nil || m.d.race != nil {
		return
	}
	for _, c := range m.d.connections {
		if c.asking != c.session {
			c.asking = nil
		}
	}
	for _, c := range m.d.connections {
		switch {
		case !c.usable(now) || m.d.asker.isAsked():
		case m.d.asker.isUnanswered(c, now):
			m.d.asker.startAsking(c, c.session)
		default:
			m.d.connector.proceed(c)
		}
	}
}

// check finds out whether the connection's sessions still work.
func (m *monitor) check(c *connection, now time.Duration) {
	for _, s := range slices.Clone(c.completing) {
		if m.listen(c, s, now); m.isDead(c, s, now) && !m.d.fetcher.hasOnly(c, s) {
			m.d.closer.giveUpOn(c, s, stalled, now)
		}
	}
	s := c.session
	if s == nil || c.out != nil {
		return
	}
	// Without requests, the bytes may be of a cancelled one.
	if m.listen(c, s, now) && c.suspect && !c.link.down && len(c.on(s)) > 0 {
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
		m.d.closer.lose(c, s)
	case !c.suspect && (m.isDead(c, s, now) || c.isStuck(now)):
		c.suspect = true
		c.failures++
		c.problem = fmt.Errorf("nothing arrived for %v", (now - s.heardAt).Round(time.Millisecond))
		s.wait = wait{}
		m.d.Log.Info("link is silent", "link", c.link.Name)
		c.asking, c.head = nil, nil
		c.wake()
	}
}

// listen notes how many bytes a session received, and reports whether there are new ones. A
// session is not silent while nothing is expected of it, or while the engine does not read it.
func (m *monitor) listen(c *connection, s *session, now time.Duration) (heard bool) {
	received := s.Received()
	heard = received != s.heard
	awaited := slices.ContainsFunc(c.on(s), (*request).isAwaited) || c.asking == s || m.d.race.on(c, s)
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
	case heard || !awaited || s.Held() || m.d.race.waits(c):
		s.heard, s.heardAt, s.wait = received, now, wait{}
	}
	return heard
}

// rate finds out which connections are slow.
func (m *monitor) rate(now time.Duration) {
	works := m.d.estimates.merged(m.d.estimates.measured(now), now)
	for _, c := range m.d.connections {
		switch {
		case len(c.active) == 0 || !schedule.Slow(c.link.index, works):
			c.slowSince = 0
		case c.slowSince == 0:
			c.slowSince = now
		}
	}
}

// changed reacts to a change of the link's device.
func (m *monitor) changed(l *linkState, change link.Change) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	m.d.Log.Info("link changed", "link", l.Name, "change", change)
	c := l.first()
	switch change {
	case link.Down:
		// The link keeps its work until it was silent for long. Else each handover would
		// waste bytes.
		l.down, l.downSince = true, time.Since(m.d.start)
		c.problem = errors.New("the device has no carrier")
	case link.Up:
		c.failures = 0
		l.answers, l.down = true, false
		for _, one := range l.connections {
			for _, s := range one.sessions() {
				s.heardAt = time.Since(m.d.start)
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
	m.d.assign()
}
