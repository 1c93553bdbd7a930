package download

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transport"
)

// Link is a way to the server.
type Link struct {
	Name, Device string
	// Bandwidth is B_x; if 0, it is the highest throughput seen.
	Bandwidth quantity.Rate
	// Dial connects to a TCP address through the link.
	Dial func(ctx context.Context, address string) (link.Socket, error)
	// Watch, if set, reports changes of the link until ctx ends.
	Watch func(ctx context.Context, report func(link.Change))
}

// account is what came over a link, on whatever connection.
type account struct {
	meter     *throughput.Meter
	requests  int
	failovers int
	wasted    quantity.Bytes
	// raced is the part of wasted that the meter has counted.
	raced quantity.Bytes
	// takesLong says that the server took long to answer the link last, so that to ask
	// for little at a time would cost as long again and again.
	takesLong bool
	// last is when the last byte arrived.
	last time.Duration
}

// linkState is a link in a download, as far as one of its connections uses it:
// it has several where there are lanes (see lanes.go).
type linkState struct {
	Link
	*account
	index int
	lane
	// little says that little is ordered ahead on the link: somebody reads in order
	// what that would hold up, or the link may soon do without its radio.
	little bool
	// url is where the link finds the resource: redirects may lead each link
	// elsewhere.
	url  *url.URL
	hops int
	// session is nil while the link is not connected.
	session *session
	// completing are older sessions on which the server completes requests
	// though it takes no new ones, the oldest first.
	completing []*session
	rtt        link.RoundTrip
	// handshake is how long the last one of TCP took.
	handshake time.Duration
	pace      *throughput.Pace

	// newest is the link's newest request until the next one is issued.
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
	// asking is the session on which the link asks for the size, if it does, and questions
	// is how many it has not answered yet.
	asking    *session
	questions int
	// head is the session on which it asks by HEAD.
	head *session
	// claim is what the link said of the resource and was not believed, and portal
	// says that a captive portal answered.
	claim  claim
	portal bool
	health
}

// mostCompleting is how many older sessions of a link may complete requests at
// a time. A server may say goodbye whenever it has got a request, and take any
// time to answer it.
const mostCompleting = 2

// mostSessions is how many sessions a link has at a time: those, the present
// one, and one that is made. Each is one connection, or http1Connections of
// the transport.
const mostSessions = mostCompleting + 2

// session is a connection of a link.
type session struct {
	*transport.Conn
	authority string
	// requests is how many were issued, and active how many are in flight.
	requests, active int
	// delivered says that bytes of a body came since a request failed last.
	delivered bool
	// draining says that it takes no new requests.
	draining bool
	closed   bool
	// since is when it was made.
	since time.Duration
	// heard is how much it had received at heardAt.
	heard   quantity.Bytes
	heardAt time.Duration
	wait    wait
	// unread is what Unread was at the beginning.
	unread quantity.Bytes
	// stale is what Unread will come to when the rest of the bodies that were
	// not wanted to their ends has arrived, if it is still to come; lateAt is when it
	// grew, or anything came, last.
	stale  quantity.Bytes
	lateAt time.Duration
	hole   hole
}

// isIdle reports whether nothing is to come any more, be it for nothing.
func (s *session) isIdle() bool { return s.active == 0 && s.stale <= s.Unread() }

// request is a range request.
type request struct {
	ranges.Range
	id      int
	session *session
	// limit is the end of what is still wanted: other links may have taken
	// over the rest.
	limit    quantity.Bytes
	received quantity.Bytes
	wasted   quantity.Bytes
	// used is how much of a resource that comes only as a whole was written.
	used   quantity.Bytes
	issued time.Duration
	// first is when the first bytes came.
	first time.Duration
	// heard is what the session had received when it was issued, and before what that
	// had to bring first.
	heard, before quantity.Bytes
	// alone says that the connection had nothing else to deliver when it was
	// issued.
	alone bool
	// dropped says that nothing more is wanted.
	dropped bool
	// twin, if any, is a request on another connection for the rest of this
	// one, which it repeats; or the one that this one repeats.
	twin    *request
	repeats bool
	// hedged says that the first bytes of one of both end the other.
	hedged bool
	// surplus says that of what was received only the first needed bytes count:
	// the twin brings the rest.
	surplus bool
	needed  quantity.Bytes
	cancel  context.CancelFunc
}

// on are the link's requests in flight on a session.
func (l *linkState) on(s *session) (requests []*request) {
	for _, r := range l.active {
		if r.session == s {
			requests = append(requests, r)
		}
	}
	return requests
}

// next is the offset of the next byte that is to arrive.
func (r *request) next() quantity.Bytes { return r.Offset + r.received }

// left is what is still wanted and has not arrived.
func (r *request) left() quantity.Bytes { return r.limit - r.next() }

// coming is what the session has received since the request was sent, and what it
// has still to bring until that is complete. A body is read a record of TLS at a time,
// of which a slow link may have brought nearly all while nothing could be read.
func (r *request) coming() (came, due quantity.Bytes) {
	came = r.session.Received() - r.heard
	due = r.before + r.wanted() - came
	return came, min(max(due, r.left()-recordSize, 0), r.before+r.left())
}

// recordSize is how much of a body TLS holds back at most until all of it has come
// (RFC 8446 5.1), in bytes.
const recordSize = 1 << 14

// wanted is the number of bytes that are wanted of all of the request.
func (r *request) wanted() quantity.Bytes { return r.limit - r.Offset }

// tail is how much may arrive of what is not wanted any more.
func (r *request) tail() quantity.Bytes { return min(r.End()-r.limit, maxStale) }

// complete reports whether all that is wanted has arrived.
func (r *request) complete() bool { return !r.dropped && r.left() == 0 }

// await tells the socket how many bytes must arrive until the link's next
// decision, which takes the part overlap of its newest request, and until all
// its requests have ended.
func (d *download) await(l *linkState) {
	if l.session == nil {
		return
	}
	decision := l.expected
	if l.newest != nil {
		decision -= quantity.Bytes((1 - d.Overlap) * float64(l.newest.wanted()))
		decision = min(decision, l.expected-d.policy.ahead(l))
	}
	l.session.Socket.Await(decision, l.expected)
	l.session.Socket.Owes(l.session.active > 0)
}

// delay is the time from a request to its first byte: a round trip, and what
// the server needs.
func (l *linkState) delay() time.Duration {
	if len(l.delays) == 0 {
		return l.rtt.Min
	}
	return max(l.rtt.Min, slices.Min(l.delays))
}

// idle is the time from a request to its first byte where nothing else is in
// flight. Where more is ordered before, delay has other bytes in it, unless it is
// the less. The last one that was alone may have waited behind what other
// connections of the link had ordered: it is not more than the least and what waits
// at the link now.
func (l *linkState) idle() time.Duration {
	if (l.isLane() || l.little) && l.idleDelay > 0 {
		queued := l.leastDelay + max(0, l.rtt.Last-l.rtt.Min)
		return min(l.delay(), max(l.rtt.Min, min(l.idleDelay, queued)))
	}
	return l.delay()
}

// mostQueue is how many times as long as without a queue a lane's delay counts at
// most. What is ordered ahead fills the link's queue, which makes the delay longer,
// by which more would be ordered ahead until packets are lost.
const mostQueue = 2

// pipe is how many bytes must be awaited so that the link is never idle. First
// bytes may come just when they were expected, which is in no time at all: they
// say nothing of a rate.
func (l *linkState) pipe(now time.Duration) quantity.Bytes {
	rate, most, delay := l.pace.Rate(now), schedule.MostOrder(l.pace.Total()), l.delay()
	switch {
	case l.little:
		delay = l.idle()
		if all := l.link().together; all != nil {
			// A burst makes a connection look faster than its link.
			rate = min(rate, all.Rate(now))
		}
	case l.isLane() && schedule.IsStarting(l.pace.Total(), rate, delay):
		return min(most, l.startRoom())
	}
	if l.isLane() {
		delay = min(delay, mostQueue*l.idle())
	}
	return min(quantity.Bytes((1.25 * rate).Over(delay)), most)
}

// measure updates the round trip time. It keeps the last known one if the
// socket cannot tell, as after a reset.
func (l *linkState) measure() {
	if l.session == nil {
		return
	}
	if rtt, err := l.session.Socket.RoundTrip(); err == nil {
		l.rtt = rtt
	}
}

// known is what a scheduler may know of the link at now.
func (l *linkState) known(now time.Duration) schedule.Link {
	bandwidth := l.Bandwidth
	if bandwidth == 0 {
		bandwidth = l.meter.Peak()
	}
	known := schedule.Link{
		Throughput: l.meter.Rate(now),
		Pace:       l.pace.Rate(now),
		Arrived:    l.pace.Total(),
		Bandwidth:  bandwidth,
		RTT:        l.rtt.Min,
		Handshake:  l.handshake,
		Variation:  l.meter.Variation(),
		Spared:     l.spared,
	}
	// A link that came back begins as it did at first.
	if l.session != nil {
		known.Requests = l.session.requests
	}
	return known
}

func (l *linkState) summary() rundir.LinkSummary {
	return rundir.LinkSummary{
		Device:    l.Device,
		Bytes:     l.meter.Total() - l.raced,
		Finish:    l.last.Nanoseconds(),
		Requests:  l.requests,
		MinRTT:    l.rtt.Min.Nanoseconds(),
		LastRTT:   l.rtt.Last.Nanoseconds(),
		Peak:      l.meter.Peak(),
		Wasted:    l.wasted,
		Failovers: l.failovers,
	}
}
