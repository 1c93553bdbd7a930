package download

import (
	"errors"
	"time"
)

// wait is the wait for a server that answers late, since it makes the page or fetches the file from
// another server. Nothing arrives, as on a dead link. So the client asks the other end for a sign
// of life (an HTTP/2 PING, or TCP's keep-alive) once TCP has acknowledged the requests. On a dead
// link TCP has unacknowledged bytes, which tells as much.
type wait struct {
	// since is when the client asked the other end first, and asked when last. there is when the
	// other end was known to be there last.
	since, asked, there time.Duration
}

const (
	// askedEarly is when the client asks, as a part of the time until the session counts as
	// silent.
	askedEarly = 0.5
	// askedByTCP is the factor by which that time is longer if only TCP can ask: it takes a
	// second.
	askedByTCP = 1.5
	// askedLess is the pause until the client asks again, as a part of a long wait.
	askedLess = 0.25
)

var errUnanswered = errors.New("the server is there, and has not answered")

// lives reports whether the other end of the session is there while the server is late.
func (s *session) lives() bool { return s.wait.there > 0 }

// awaitsFirst reports whether no request of the session has an answer yet.
func (d *download) awaitsFirst(c *connection, s *session) bool {
	for _, r := range c.active {
		if r.session == s && r.received > 0 {
			return false
		}
	}
	return s == c.session || !d.race.on(c, s) || d.race.runners[c].received == 0
}

// isDead reports whether a session brought nothing for too long, and gave no sign of life.
func (d *download) isDead(c *connection, s *session, now time.Duration) bool {
	limit := c.silence(s)
	if !d.awaitsFirst(c, s) {
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
		d.do(askPeer{s})
	}
	if !s.AsksAtOnce() {
		limit = time.Duration(askedByTCP * float64(limit))
	}
	return now-s.present() > limit
}

// present is when the session last received something, or last gave a sign of life.
func (s *session) present() time.Duration { return max(s.heardAt, s.wait.there) }
