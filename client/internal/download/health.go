package download

import (
	"context"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/transfer"
)

// health is what the client knows of a connection's failures.
type health struct {
	// need receives when the connection may need a session, and hurry when an attempt may
	// succeed at once.
	need, hurry chan struct{}
	// abandonAttempt ends the present attempt to connect.
	abandonAttempt context.CancelFunc
	// out is why the connection is not used any more.
	out error
	// suspect says that nothing arrives, though it should.
	suspect bool
	// failures counts the failures since new bytes arrived; problem is the last one.
	failures int
	problem  error
	// notBefore is when the connection may take requests again.
	notBefore time.Duration
	// slowSince is since when the connection is slow; 0 if it is not.
	slowSince time.Duration
}

func newHealth() health {
	return health{need: make(chan struct{}, 1), hurry: make(chan struct{}, 1), abandonAttempt: func() {}}
}

// sessions returns all sessions of the connection.
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

// wake makes connector.keep look at the connection.
func (c *connection) wake() { notify(c.need) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// heard notes that bytes arrived.
func (c *connection) heard() {
	c.hops, c.link.portal = 0, false
	if c.suspect && !c.link.down {
		c.suspect = false
		c.abandonAttempt()
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
	return transfer.Doubled(transfer.Silence(least, c.rtt.Last), c.failures, transfer.Silence(mostSilence, c.rtt.Last))
}

// onTrial reports whether the link failed and brought nothing since.
func (c *connection) onTrial() bool { return c.link.failovers > 0 && c.pace.Total() == 0 }

// patience is how long other connections leave a new request to this one.
func (c *connection) patience() time.Duration { return max(leastSlow, 2*c.delay()) }

// isSlow reports whether the connection is slow for too long to be chance.
func (c *connection) isSlow(now time.Duration) bool {
	return c.slowSince > 0 && now-c.slowSince >= max(leastSlow, slowTrips*c.rtt.Min)
}
