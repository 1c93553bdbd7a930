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

// requestState is how far a request is.
type requestState int

const (
	// requested is a request without an answer.
	requested requestState = iota
	// arriving is one of which bytes have arrived.
	arriving
	// held is one whose last wanted byte the engine does not read yet (request.isHeld).
	held
	// complete is one whose wanted bytes have all been read. The last ones may still be written.
	complete
	// givenUp is one whose missing bytes are free again, or another request's.
	givenUp
)

func (r *request) state() requestState {
	switch {
	case r.dropped:
		return givenUp
	case r.left() == 0:
		return complete
	case r.isHeld:
		return held
	case r.received > 0:
		return arriving
	}
	return requested
}

func (r *request) complete() bool { return r.state() == complete }

// goesOn reports whether wanted bytes are still to arrive.
func (r *request) goesOn() bool { return r.state() < complete }
