package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// connection is one of a link's connections to the server. When its session breaks, it gets another one.
type connection struct {
	link *linkState
	// index is its place among all connections of the download.
	index int
	commonConnection
	// completing are older sessions, the oldest first. They take no new requests, but the
	// server still completes earlier ones on them.
	completing []*session
	// idleDelay is the time from the last request that was sent alone to its first byte, and
	// leastDelay the least of those.
	idleDelay, leastDelay time.Duration
	// asking is the session on which it asks what the URL stands for, until an answer comes. questions is
	// how many of these requests it sent there, and askedAt is when it sent the last one.
	asking    *session
	questions int
	askedAt   time.Duration
	// head is the session on which it asks by HEAD, if it does.
	head *session
	// leaving says that it takes no more requests and closes after its last one.
	leaving bool
	// What follows is what the client knows of its failures.

	// attempt is the present attempt to connect.
	attempt *attempt
	// pausing is the pause before the connection's next attempt. skipsPause says that there is none before it.
	pausing    *paused
	skipsPause bool
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

// newConnection adds a further connection to the link, but not yet to the download. It begins with what the client
// measured on the first one.
func (l *linkState) newConnection() *connection {
	first := l.first()
	c := &connection{link: l, commonConnection: newConnection(first.url)}
	c.rtt, c.delays = first.rtt, slices.Clone(first.delays)
	l.connections = append(slices.Clone(l.connections), c)
	return c
}

func (c *connection) isFirst() bool { return c.link.first() == c }

// idle is the time from a request to its first byte if nothing else is in flight. With other requests in flight, delay
// includes the time of their bytes. The last request that was sent alone may have waited for other connections of its
// link. So idle is at most the least such delay plus the present queue.
func (c *connection) idle() time.Duration {
	if (c.link.HasSeveral() || c.link.shortQueue) && c.idleDelay > 0 {
		queued := c.leastDelay + max(0, c.rtt.Last-c.rtt.Min)
		return min(c.delay(), max(c.rtt.Min, min(c.idleDelay, queued)))
	}
	return c.delay()
}

// pipe is how many bytes must be in flight so that the link is never idle. First bytes may
// arrive exactly when they were expected, in no time: they tell no rate.
func (c *connection) pipe(now time.Duration) quantity.Bytes {
	rate, most, delay := c.pace.Rate(now), schedule.MostOrder(c.pace.Total()), c.delay()
	switch {
	case c.link.shortQueue:
		delay = c.idle()
		if c.link.HasSeveral() {
			// After a burst, a connection seems faster than its link.
			rate = min(rate, c.link.Together.Rate(now))
		}
	case c.link.HasSeveral() && schedule.IsStarting(c.pace.Total(), rate, delay):
		return min(most, c.startRoom())
	}
	if c.link.HasSeveral() {
		delay = min(delay, transfer.MostFirstByte*c.idle())
	}
	return min(transfer.Ahead(rate, delay, 0), most)
}

func (c *connection) on(s *session) (requests []*request) {
	for _, r := range c.active {
		if r.session == s {
			requests = append(requests, r)
		}
	}
	return requests
}

func (c *connection) delivered(bytes quantity.Bytes, now time.Duration) {
	c.pace.Add(now, bytes)
	c.link.Together.Add(now, bytes)
}

// begun notes that the connection has a request in flight, whose first byte comes after the delay.
func (c *connection) begun(delay, now time.Duration) {
	c.pace.Begin(now, delay)
	c.link.Together.Begin(now, delay)
}

// isSilent reports whether the connection received nothing for longer than usual: another one
// of the link may do better.
func (c *connection) isSilent(now time.Duration) bool {
	return c.session == nil || transfer.IsQuiet(now-c.session.heardAt, c.rtt.Last)
}

// hears reports whether answers arrive. A connection without requests does not hear.
func (c *connection) hears(now time.Duration) bool { return len(c.active) > 0 && !c.isSilent(now) }

// startRoom is how many bytes the connection can bring in slow start before the server has its next request.
func (c *connection) startRoom() quantity.Bytes {
	most := c.link.Shown.Most()
	if most > 0 {
		most = max(most, c.link.Meter.Peak())
	}
	return schedule.StartRoom(most, c.link.Growth.Connections(), c.delay())
}

// fails counts a failure. The connection takes no requests for a while, longer with each failure.
func (c *connection) fails(now time.Duration) {
	c.failures++
	c.notBefore = now + transfer.Backoff(c.failures)
}

// broken notes that the connection failed. A further one of the link is removed then.
func (c *connection) broken() { c.suspect = c.suspect || !c.isFirst() }
