package download

import "time"

// state is what a connection can do at a time. A connection is in the first of these states that fits it.
type state int

const (
	// gone is a connection that is not used any more: health.out says why.
	gone state = iota
	// down is one whose link has no carrier or no device.
	down
	// spared is one whose link a plan does not use.
	spared
	// connecting is one without a session, or whose session takes no more requests.
	connecting
	// silent is one that received nothing for too long. The client connects it again beside its session.
	silent
	// backingOff is one that waits until health.notBefore after a failure.
	backingOff
	// refused is one whose link the server answers without ranges, or answers no second time.
	refused
	// ready is one that takes requests.
	ready
)

func (c *connection) state(now time.Duration) state {
	switch {
	case c.out != nil:
		return gone
	case c.link.down:
		return down
	case c.link.spared:
		return spared
	case c.session == nil || c.session.draining:
		return connecting
	case c.suspect:
		return silent
	case now < c.notBefore:
		return backingOff
	case c.link.refused != nil || c.link.isSpent:
		return refused
	}
	return ready
}

// needsSession reports whether it should be connected.
func (c *connection) needsSession() bool {
	is := c.state(0)
	return is == connecting || is == silent
}

// usable reports whether it can take requests.
func (c *connection) usable(now time.Duration) bool { return c.state(now) == ready }

// alive reports whether nothing speaks against its session, whatever its link and the server allow.
func (c *connection) alive() bool {
	return c.out == nil && c.session != nil && !c.session.draining && !c.suspect
}
