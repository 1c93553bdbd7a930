package download

import (
	"errors"
	"time"
)

// wait is one for a server that takes long to answer: it makes the page, or fetches the
// file from elsewhere. Nothing arrives, as on a link that is dead. So the other end is
// asked whether it is there, once its kernel has the requests: of a dead link TCP still
// has something to repeat, which tells as much.
type wait struct {
	// since is when the other end was asked first, and asked when last; there is when it
	// was there last, as it has answered since.
	since, asked, there time.Duration
}

const (
	// askedEarly is the part of the time until a session is silent after which the other
	// end is asked.
	askedEarly = 0.5
	// askedByTCP is how much longer that time is where only TCP can ask, which does not
	// before a second has passed.
	askedByTCP = 1.5
	// askedLess is the part of a long wait for which nobody is asked again.
	askedLess = 0.25
)

var errUnanswered = errors.New("the server is there, and has not answered")

// lives reports whether the other end of the session is there, while its server takes
// long to answer.
func (s *session) lives() bool { return s.wait.there > 0 }

// awaitsFirst reports whether nothing has come of what the session was asked for.
func (m *monitor) awaitsFirst(c *connection, s *session) bool {
	for _, r := range c.active {
		if r.session == s && r.received > 0 {
			return false
		}
	}
	return s == c.session || !m.d.race.on(c, s) || m.d.race.runners[c].received == 0
}

// isDead reports whether nothing comes on a session for too long, and nobody there says
// that something will.
func (m *monitor) isDead(c *connection, s *session, now time.Duration) bool {
	limit := c.silence(s)
	if !m.awaitsFirst(c, s) {
		return now-s.heardAt > limit
	}
	w := &s.wait
	if w.since > 0 {
		limit = max(limit, min(mostSilence, time.Duration(askedLess*float64(now-w.since))))
	}
	early := s.present() + time.Duration(askedEarly*float64(limit))
	if now <= early {
		return false
	}
	ago, all, err := s.Socket.Answered()
	if err != nil || !all {
		return now-s.present() > limit
	}
	if w.asked > 0 && now-ago > w.asked {
		w.there = max(w.there, now-ago)
	}
	if w.asked <= s.present() {
		if w.asked = now; w.since == 0 {
			w.since = now
		}
		_ = s.Ask() // A failure means a closed connection.
	}
	if !s.AsksAtOnce() {
		limit = time.Duration(askedByTCP * float64(limit))
	}
	return now-s.present() > limit
}

// present is when something came last, or the other end was there.
func (s *session) present() time.Duration { return max(s.heardAt, s.wait.there) }
