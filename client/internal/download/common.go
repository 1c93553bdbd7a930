package download

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// This file is what both engines know of links and connections, and what they tell recorders of them.

// commonLink is what both engines know of a link.
type commonLink struct {
	transfer.Link
	transfer.Account
	// index is the link's place among the links.
	index     int
	failovers int
	// spared says that a plan does not use the link now.
	spared bool
}

// commonConnection is what both engines know of a connection: its requests, and what the client has measured on the way
// to the server.
type commonConnection struct {
	// url is where this connection requests the resource: redirects may differ by connection. There were so many hops.
	url  *url.URL
	hops int
	// session is nil while the connection is not connected.
	session *session
	// newest is the newest request until the next one is issued, and active are those in flight, which have still to bring
	// the expected bytes.
	newest   *request
	active   []*request
	expected quantity.Bytes

	rtt link.RoundTrip
	// handshake is how long the last TCP handshake took.
	handshake time.Duration
	pace      *throughput.Pace
	// delays are the times from the last requests to their first bytes.
	delays []time.Duration
}

// delaySamples is the number of requests by which a connection knows how soon the server answers.
const delaySamples = 4

func newCommonLink(index int, of transfer.Link, window time.Duration) commonLink {
	return commonLink{Link: of, Account: transfer.NewAccount(window), index: index}
}

func newConnection(u *url.URL) commonConnection {
	return commonConnection{url: u, pace: throughput.NewPace(schedule.PaceWindow)}
}

// summary is that of a link, of which so many bytes count.
func (l *commonLink) summary(bytes quantity.Bytes, rtt link.RoundTrip) rundir.LinkSummary {
	summary := l.Summary(l.Device, bytes, rtt.Min, rtt.Last)
	summary.Failovers = l.failovers
	return summary
}

// measure updates the round trip time, if there is a session. If the socket cannot tell it, as after a reset, the last
// one stays.
func (c *commonConnection) measure() {
	if c.session == nil {
		return
	}
	if rtt, err := c.session.Socket.RoundTrip(); err == nil {
		c.rtt = rtt
	}
}

// delay is the time from a request to its first byte: a round trip and the server's time.
func (c *commonConnection) delay() time.Duration {
	if len(c.delays) == 0 {
		return c.rtt.Min
	}
	return max(c.rtt.Min, slices.Min(c.delays))
}

func (c *commonConnection) known(l *commonLink, now time.Duration) schedule.Link {
	requests := 0
	if c.session != nil {
		requests = c.session.requests // A link that is connected again begins as at first.
	}
	return schedule.Link{
		Spared:     l.spared,
		Requests:   requests,
		Throughput: l.Meter.Rate(now),
		Pace:       c.pace.Rate(now),
		Arrived:    c.pace.Total(),
		Bandwidth:  l.Peak(l.Bandwidth),
		RTT:        c.rtt.Min,
		Handshake:  c.handshake,
		Variation:  l.Meter.Variation(),
	}
}

func (c *commonConnection) sends(l *commonLink, r *request) {
	c.newest = r
	l.Requests++
	r.session.requests++
	r.session.active++
	c.active = append(c.active, r)
	c.expected += r.Length
}

// givesUp makes a request want no more bytes. It returns the range that the request has not brought.
func (c *commonConnection) givesUp(r *request) ranges.Range {
	left := r.rest()
	c.shrink(r, left.Length)
	r.dropped = true
	return left
}

// shrink makes a request want so many bytes less at its end.
func (c *commonConnection) shrink(r *request, bytes quantity.Bytes) {
	r.limit -= bytes
	c.expected -= bytes
}

// ends removes a request from those in flight. It reports whether all others still wait for the server.
func (c *commonConnection) ends(r *request) (othersWait bool) {
	c.active = slices.DeleteFunc(c.active, func(other *request) bool { return other == r })
	if c.newest == r && r.dropped {
		c.newest = nil
	}
	return !slices.ContainsFunc(c.active, func(other *request) bool { return other.received > 0 })
}

// decision is how many bytes must arrive until the next decision: the part overlap of the newest request, with so many
// bytes of it ahead.
func (c *commonConnection) decision(overlap float64, ahead quantity.Bytes) quantity.Bytes {
	if c.newest == nil {
		return c.expected
	}
	return min(c.expected-quantity.Bytes((1-overlap)*float64(c.newest.wanted())), c.expected-ahead)
}

// redirected makes the connection request from another URL. It reports whether the present session leads there.
func (c *commonConnection) redirected(to *transport.RedirectError, scheme string) bool {
	c.session.requests = max(0, c.session.requests-1) // The request that was redirected did not happen.
	c.url = to.Location
	return c.url.Host == c.session.authority && c.url.Scheme == scheme
}

// recordConnected notes and records that a connection has its session.
func (t *task) recordConnected(l *commonLink, c *commonConnection, event *rundir.Connected, now time.Duration) {
	if event.TCP > 0 {
		c.handshake = time.Duration(event.TCP)
	}
	event.Link, event.RTT = l.Name, c.rtt.Last.Nanoseconds()
	t.record(now, event)
}

// recordRequest records a request that was issued at a time, with the rate of then.
func (t *task) recordRequest(l *commonLink, r *request, from string, at, now time.Duration) {
	t.record(now, &rundir.Request{
		Link:   l.Name,
		ID:     r.id,
		Offset: int64(r.Offset),
		Length: int64(r.Length),
		Rate:   float64(l.Meter.Rate(at)),
		From:   from,
	})
}

// countArrived counts wanted bytes of a body that arrived, and returns how many are new.
func (t *task) countArrived(l *commonLink, c *commonConnection, r *request, bytes quantity.Bytes, now time.Duration) (fresh quantity.Bytes) {
	if r.received == bytes {
		r.first = now
		t.record(now, &rundir.FirstByte{Link: l.Name, ID: r.id})
		c.delays = append(c.delays[max(0, len(c.delays)-delaySamples+1):], now-r.issued)
	}
	fresh = t.balance.Arrived(ranges.Range{Offset: r.next() - bytes, Length: bytes}, r.first, now)
	l.Last, t.ranged = now, true
	l.Meter.Add(now, bytes)
	r.proof.Fresh(fresh, r.received == r.Length && r.Length >= t.part.Length)
	return fresh
}

// recordEarlyEnd records a request that ended with an error before all its wanted bytes arrived, and returns the error.
func (t *task) recordEarlyEnd(l *commonLink, r *request, isCancelled bool, err error, now time.Duration) error {
	outcome := rundir.Cancelled
	if !isCancelled {
		outcome, err = rundir.Failed, fmt.Errorf("bytes %d-%d: %w", int64(r.Offset), int64(r.End()-1), err)
	}
	t.recordEnd(l, r, outcome, err, now)
	return err
}

// recordEnd counts the wasted bytes of a request that has ended, and records its end. Only a failure has an error.
func (t *task) recordEnd(l *commonLink, r *request, outcome string, err error, now time.Duration) {
	end := &rundir.End{Link: l.Name, ID: r.id, Bytes: int64(r.received), Wasted: int64(r.wasted), Outcome: outcome}
	if outcome == rundir.Failed {
		end.Error = err.Error()
	}
	l.Wasted += r.wasted
	t.record(now, end)
}

// recordWasted counts the bytes that a session received and nothing read since the last call.
func (t *task) recordWasted(l *commonLink, s *session, now time.Duration) {
	if late := s.Unread() - s.unread; late > 0 {
		s.unread += late
		l.Wasted += late
		t.record(now, &rundir.Late{Link: l.Name, Bytes: int64(late)})
	}
}

// recordFailover records that a link lost work to another one; to is empty if no link has the work yet.
func (t *task) recordFailover(l *commonLink, to string, bytes quantity.Bytes, reason string, now time.Duration) {
	l.failovers++
	t.record(now, &rundir.Failover{Link: l.Name, To: to, Bytes: int64(bytes), Reason: reason})
}

// recordSample records the state of a link that is connected, with so many requests in flight.
func (t *task) recordSample(l *commonLink, c *commonConnection, inFlight int, now time.Duration) {
	c.measure()
	t.record(now, &rundir.Sample{
		Link:       l.Name,
		Received:   int64(l.Meter.Total()),
		Throughput: float64(l.Meter.Rate(now)),
		RTT:        c.rtt.Last.Nanoseconds(),
		MinRTT:     c.rtt.Min.Nanoseconds(),
		InFlight:   inFlight,
		Segments:   int64(c.rtt.Segments),
		OutOfOrder: int64(c.rtt.OutOfOrder),
	})
}
