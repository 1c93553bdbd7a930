package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// health is what the client knows of a connection's failures.
type health struct {
	// attempt is the present attempt to connect.
	attempt *attempt
	// pausing is the pause before the connection's next attempt. skipsPause says that there is none before it.
	pausing    *paused
	skipsPause bool
	// isWoken says that the connection may need a session: the loop looks after the present step.
	isWoken bool
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

// wake makes the loop look whether the connection needs a session.
func (c *connection) wake() { c.isWoken = true }

// heard notes that bytes arrived.
func (d *download) heard(c *connection) {
	c.hops, c.link.portal = 0, false
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
	return transfer.Doubled(transfer.Silence(least, c.rtt.Last), c.failures, transfer.Silence(mostSilence, c.rtt.Last))
}

// onTrial reports whether the link failed and brought nothing since.
func (c *connection) onTrial() bool { return c.link.failovers > 0 && c.pace.Total() == 0 }

// patience is how long other connections leave a new request to this one.
func (c *connection) patience() time.Duration { return max(leastSlow, 2*c.delay()) }

// isSlow reports whether the connection is slow for too long to be chance.
func (c *connection) isSlow(now time.Duration) bool {
	return c.slowSince > 0 && now-c.slowSince >= max(leastSlow, schedule.FewTrips*c.rtt.Min)
}
