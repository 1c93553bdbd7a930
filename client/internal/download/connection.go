package download

import (
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// connection is one of a link's connections to the server, which is made again when it
// breaks: it has one session after another.
type connection struct {
	link *linkState
	// index is its place among all connections of the download.
	index int
	// url is where the connection finds the resource: redirects may lead each
	// elsewhere.
	url  *url.URL
	hops int
	// session is nil while it is not connected.
	session *session
	// completing are older sessions on which the server completes requests
	// though it takes no new ones, the oldest first.
	completing []*session
	rtt        link.RoundTrip
	// handshake is how long the last one of TCP took.
	handshake time.Duration
	pace      *throughput.Pace

	// newest is the newest request until the next one is issued.
	newest *request
	// active are the requests in flight, on whatever session.
	active []*request
	// expected is what they have still to deliver.
	expected quantity.Bytes
	// delays are the times from the last requests to their first bytes, and
	// idleDelay that of the last one that waited for no other's bytes, leastDelay
	// the least of those.
	delays                []time.Duration
	idleDelay, leastDelay time.Duration
	// asking is the session on which it asks for the size, if it does, and questions
	// is how many have no answer yet.
	asking    *session
	questions int
	// head is the session on which it asks by HEAD.
	head *session
	// leaving says that it takes no more requests.
	leaving bool
	health
}

// newConnection gives the link another connection, which the download does not know yet.
// What is known of the first one is expected of it.
func (l *linkState) newConnection() *connection {
	c := &connection{link: l, pace: throughput.NewPace(transfer.PaceWindow), health: newHealth()}
	if len(l.connections) > 0 {
		first := l.first()
		c.url, c.rtt, c.delays = first.url, first.rtt, slices.Clone(first.delays)
	}
	l.connections = append(slices.Clone(l.connections), c)
	return c
}

// isFirst reports whether it is the link's first connection.
func (c *connection) isFirst() bool { return c.link.first() == c }

// delay is the time from a request to its first byte: a round trip, and what
// the server needs.
func (c *connection) delay() time.Duration {
	if len(c.delays) == 0 {
		return c.rtt.Min
	}
	return max(c.rtt.Min, slices.Min(c.delays))
}

// idle is the time from a request to its first byte where nothing else is in
// flight. Where more is ordered before, delay has other bytes in it, unless it is
// the less. The last one that was alone may have waited behind what other
// connections of the link had ordered: it is not more than the least and what waits
// at the link now.
func (c *connection) idle() time.Duration {
	if (c.link.HasSeveral() || c.link.shortQueue) && c.idleDelay > 0 {
		queued := c.leastDelay + max(0, c.rtt.Last-c.rtt.Min)
		return min(c.delay(), max(c.rtt.Min, min(c.idleDelay, queued)))
	}
	return c.delay()
}

// pipe is how many bytes must be awaited so that the link is never idle. First
// bytes may come just when they were expected, which is in no time at all: they
// say nothing of a rate.
func (c *connection) pipe(now time.Duration) quantity.Bytes {
	rate, most, delay := c.pace.Rate(now), schedule.MostOrder(c.pace.Total()), c.delay()
	switch {
	case c.link.shortQueue:
		delay = c.idle()
		if all := c.link.Together; all != nil {
			// A burst makes a connection look faster than its link.
			rate = min(rate, all.Rate(now))
		}
	case c.link.HasSeveral() && schedule.IsStarting(c.pace.Total(), rate, delay):
		return min(most, c.startRoom())
	}
	if c.link.HasSeveral() {
		delay = min(delay, transfer.MostFirstByte*c.idle())
	}
	return min(transfer.Ahead(rate, delay, 0), most)
}

// measure updates the round trip time. It keeps the last known one if the
// socket cannot tell, as after a reset.
func (c *connection) measure() {
	if c.session == nil {
		return
	}
	if rtt, err := c.session.Socket.RoundTrip(); err == nil {
		c.rtt = rtt
	}
}

// known is what a scheduler may know of the link at now.
func (c *connection) known(now time.Duration) schedule.Link {
	known := schedule.Link{
		Throughput: c.link.Meter.Rate(now),
		Pace:       c.pace.Rate(now),
		Arrived:    c.pace.Total(),
		Bandwidth:  c.link.Peak(c.link.Bandwidth),
		RTT:        c.rtt.Min,
		Handshake:  c.handshake,
		Variation:  c.link.Meter.Variation(),
		Spared:     c.link.spared,
	}
	// A link that came back begins as it did at first.
	if c.session != nil {
		known.Requests = c.session.requests
	}
	return known
}

// on are the link's requests in flight on a session.
func (c *connection) on(s *session) (requests []*request) {
	for _, r := range c.active {
		if r.session == s {
			requests = append(requests, r)
		}
	}
	return requests
}

// delivered counts what has come on the link.
func (c *connection) delivered(bytes quantity.Bytes, now time.Duration) {
	c.pace.Add(now, bytes)
	if all := c.link.Together; all != nil {
		all.Add(now, bytes)
	}
}

// begun says that the link has something to deliver, of which nothing comes
// before the delay.
func (c *connection) begun(delay, now time.Duration) {
	c.pace.Begin(now, delay)
	if all := c.link.Together; all != nil {
		all.Begin(now, delay)
	}
}

// isSilent reports whether nothing has come for longer than usual, where others
// of the link may do better.
func (c *connection) isSilent(now time.Duration) bool {
	return c.session == nil || transfer.IsQuiet(now-c.session.heardAt, c.rtt.Last)
}

// hears reports whether something comes of what the connection asked for. One that asked
// for nothing does not tell.
func (c *connection) hears(now time.Duration) bool { return len(c.active) > 0 && !c.isSilent(now) }

// startRoom is what the connection can bring in slow start until its next order comes.
func (c *connection) startRoom() quantity.Bytes {
	most := c.link.Shown.Most()
	if most > 0 {
		most = max(most, c.link.Meter.Peak())
	}
	return schedule.StartRoom(most, c.link.Growth.Connections(), c.delay())
}

// broken says that the connection failed. A further one is gone then.
func (c *connection) broken() { c.suspect = c.suspect || !c.isFirst() }
