package download

import (
	"context"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/transfer"
)

// health is what is known of a connection's failures.
type health struct {
	// need receives when it may have to be connected, and hurry when it
	// is worth trying at once.
	need, hurry chan struct{}
	// abandonAttempt ends the present attempt to connect.
	abandonAttempt context.CancelFunc
	// out is why it is not used any more.
	out error
	// suspect says that nothing arrives though it should.
	suspect bool
	// failures counts what went wrong since new bytes arrived; problem is the
	// last of it.
	failures int
	problem  error
	// notBefore is when it may take requests again.
	notBefore time.Duration
	// slowSince is since when it is slow; 0 if it is not.
	slowSince time.Duration
}

func newHealth() health {
	return health{need: make(chan struct{}, 1), hurry: make(chan struct{}, 1), abandonAttempt: func() {}}
}

// needsSession reports whether it should be connected.
func (c *connection) needsSession() bool {
	return c.out == nil && !c.link.down && !c.link.spared && (c.session == nil || c.suspect || c.session.draining)
}

// alive reports whether nothing speaks against its session.
func (c *connection) alive() bool {
	return c.session != nil && !c.session.draining && c.out == nil && !c.suspect
}

// sessions are all that the connection has.
func (c *connection) sessions() []*session {
	all := slices.Clone(c.completing)
	if c.session != nil {
		all = append(all, c.session)
	}
	return all
}

// usable reports whether it can take requests.
func (c *connection) usable(now time.Duration) bool {
	return c.alive() && !c.link.down && !c.link.spared && now >= c.notBefore && c.link.refused == nil && !c.link.isSpent
}

// interrupted reports whether the link has no carrier since so short a time
// that it may go on at any moment, as after a handover. One that has nothing to
// deliver is not noticed to be silent.
func (c *connection) interrupted(now time.Duration) bool {
	return c.alive() && c.link.down && !c.link.spared && now-c.link.downSince <= c.silence(c.session)
}

// wake lets keep look at the connection.
func (c *connection) wake() { notify(c.need) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// heard says that bytes arrived.
func (c *connection) heard() {
	c.hops, c.link.portal = 0, false
	if c.suspect && !c.link.down {
		c.suspect = false
		c.abandonAttempt()
	}
}

// silence is how long nothing may arrive on a session.
func (c *connection) silence(s *session) time.Duration {
	least := max(firstSilence, 2*c.delay())
	for _, r := range c.on(s) {
		if r.received > 0 {
			least = transfer.LeastSilence
		}
	}
	return transfer.Doubled(transfer.Silence(least, c.rtt.Last), c.failures, transfer.Silence(mostSilence, c.rtt.Last))
}

// onTrial reports whether the link failed, and nothing has come since.
func (c *connection) onTrial() bool { return c.link.failovers > 0 && c.pace.Total() == 0 }

// patience is how long a request that was just sent is left to the connection.
func (c *connection) patience() time.Duration { return max(leastSlow, 2*c.delay()) }

// isSlow reports whether the connection is slow for longer than by chance.
func (c *connection) isSlow(now time.Duration) bool {
	return c.slowSince > 0 && now-c.slowSince >= max(leastSlow, slowTrips*c.rtt.Min)
}
