package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// subsegment is what a plan knows of a link.
type subsegment struct {
	// kind is what the link is.
	kind energy.Kind
	// reserved are the ranges that the link requests next.
	reserved []ranges.Range
	// current is the request whose bytes arrive now. It is measured since that time, when the
	// link had received had bytes. Its rate means nothing before the time least has passed.
	current *request
	since   time.Duration
	had     quantity.Bytes
	least   time.Duration
	// goodput is the rate of the last complete request that was long enough to measure, and
	// finished how many such requests there were.
	goodput  quantity.Rate
	finished int
	// first is when the first request of the link was sent.
	first time.Duration
	// forsaken says that the plan gave the link up.
	forsaken bool
	wire
}

// wire counts what the network brought for a link, TLS included. The kernel knows it: bodies arrive
// a record of TLS at a time, which is seldom on a slow link, and not at all behind a lost packet.
type wire struct {
	of       *session
	seen     quantity.Bytes // of that session
	received quantity.Bytes
	heard    time.Duration
}

// look updates the count by the link's session.
func (w *wire) look(s *session, now time.Duration) {
	if s == nil {
		return
	}
	if w.of != s {
		w.of, w.seen = s, 0
	}
	got := s.Received()
	if known, err := s.Socket.RoundTrip(); err == nil {
		got = max(got, quantity.Bytes(known.Segments)*schedule.SegmentSize)
	}
	if got > w.seen {
		w.received += got - w.seen
		w.seen, w.heard = got, now
	}
}

// leastMeasured is how long a subsegment must arrive at least until its rate is meaningful; so are
// two round trips, queue included. Behind a lost packet nothing arrives for a round trip, and then
// all at once.
const leastMeasured = transfer.LeastSilence

// rate is the mean over the present subsegment, or over the last one while the present one is
// young. total is how many bytes the link has received.
func (w *subsegment) rate(now time.Duration, total quantity.Bytes) quantity.Rate {
	if took := now - w.since; w.current != nil && !w.current.complete() && !w.current.dropped && took >= w.least {
		return (total - w.had).Per(took)
	}
	return w.goodput
}

// follow notes bytes that arrived for a request.
func (w *subsegment) follow(c *connection, r *request, now time.Duration) {
	if w.current == nil || w.current != r && (w.current.complete() || w.current.dropped) {
		// How long the first bytes took to arrive is not known.
		w.measureFrom(c, r, now)
	}
	if w.current != r || !r.complete() {
		return
	}
	rest, took, pace := c.link.Meter.Total()-w.had, now-w.since, c.pace.Rate(now)
	// Most of a small request may arrive with its first bytes: then its rate means nothing.
	measured := took >= w.least && 2*rest >= r.received
	switch {
	case measured:
		w.goodput = rest.Per(took)
		w.finished++
	case w.goodput == 0 && pace > 0:
		w.goodput = pace
		w.finished++
	}
	// If the next request was sent in time, the link goes on with it, even while its bytes wait
	// behind a lost packet. A request that was too short is measured together with it.
	if next := c.newest; next != nil && next != r && now-next.issued >= c.rtt.Min {
		if measured {
			w.measureFrom(c, next, now)
		}
		w.current = next
	}
}

// measureFrom begins to measure the rate of a request.
func (w *subsegment) measureFrom(c *connection, r *request, now time.Duration) {
	c.measure()
	w.current, w.since, w.had, w.least = r, now, c.link.Meter.Total(), max(leastMeasured, 2*c.rtt.Last)
}
