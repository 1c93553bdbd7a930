package download

import (
	"errors"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

const (
	// maxStale is how many bytes of a cancelled body still arrive at most: the server's send
	// queue. With more to come, a connection is not kept in the pool: a new one is made sooner.
	maxStale = 512 << 10

	// A connection is silent when nothing arrived for schedule.FewTrips round trips, and not for
	// transfer.LeastSilence, or for firstSilence if no present request has an answer yet.
	firstSilence = time.Second

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
	// hopeless is how often every link must fail to connect at the beginning before the download fails.
	hopeless = 3
	// mostWhole is how often a server that served ranges may answer with the whole file before
	// the client requests no more ranges.
	mostWhole = 4
)

// Reasons of failovers.
const (
	lost     = "lost"
	excluded = "excluded"
	stalled  = "stalled"
	slow     = "slow"
)

func (c *connection) sessions() []*session {
	all := slices.Clone(c.completing)
	if c.session != nil {
		all = append(all, c.session)
	}
	return all
}

// interrupted reports whether the link lost its carrier so recently that it may go on at any
// moment, as in a handover. Silence alone does not show that on a connection without requests.
func (c *connection) interrupted(now time.Duration) bool {
	return c.alive() && c.link.down && !c.link.spared && now-c.link.downSince <= c.silence(c.session)
}

// trust ends the suspicion against a connection whose present session brings bytes.
func (d *download) trust(c *connection) {
	if c.suspect && !c.link.down {
		c.suspect = false
		d.abandonAttempt(c)
	}
}

// silence is how long a session may bring nothing.
func (c *connection) silence(s *session) time.Duration {
	least := max(firstSilence, 2*c.delay())
	for _, r := range c.on(s) {
		if r.received > 0 {
			least = transfer.LeastSilence
		}
	}
	return transfer.Doubled(transfer.Silence(least, c.rtt.Last), c.failures, transfer.Silence(transfer.MostBackoff, c.rtt.Last))
}

// onTrial reports whether the link failed and brought nothing since.
func (c *connection) onTrial() bool { return c.link.failovers > 0 && c.pace.Total() == 0 }

// patience is how long other connections leave a new request to this one.
func (c *connection) patience() time.Duration { return max(schedule.PaceWindow, 2*c.delay()) }

// isSlow reports whether the connection is slow for too long to be chance.
func (c *connection) isSlow(now time.Duration) bool {
	return c.slowSince > 0 && now-c.slowSince >= max(schedule.PaceWindow, schedule.FewTrips*c.rtt.Min)
}

// wait is the wait for a server that answers late, since it makes the page or fetches the file from another server.
// Nothing arrives, as on a dead link. So the client asks the other end for a sign of life (an HTTP/2 PING, or TCP's
// keep-alive) once TCP has acknowledged the requests. On a dead link TCP has unacknowledged bytes, which tells as much.
type wait struct {
	// since is when the client asked the other end first, and asked when last. there is when the
	// other end was known to be there last.
	since, asked, there time.Duration
}

const (
	// askedEarly is when the client asks, as a part of the time until the session counts as silent.
	askedEarly = 0.5
	// askedByTCP is the factor by which that time is longer if only TCP can ask: it takes a second.
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
		limit = max(limit, min(transfer.MostBackoff, time.Duration(askedLess*float64(now-w.since))))
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
		d.askPeer(s)
	}
	if !s.AsksAtOnce() {
		limit = time.Duration(askedByTCP * float64(limit))
	}
	return now-s.present() > limit
}

// present is when the session last received something, or last gave a sign of life.
func (s *session) present() time.Duration { return max(s.heardAt, s.wait.there) }
