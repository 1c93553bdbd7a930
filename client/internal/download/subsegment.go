package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// subsegment is what a link does for a plan.
type subsegment struct {
	// kind is what the link is.
	kind energy.Kind
	// reserved is what the link gets next.
	reserved []ranges.Range
	// current is what arrives now; since when, and how much had come over the link
	// then: the next one may already be on its way, beside it. Before least has
	// passed its rate says nothing.
	current *request
	since   time.Duration
	had     quantity.Bytes
	least   time.Duration
	// goodput is the rate of the last one that was complete and long enough to
	// tell, and finished how many there were.
	goodput  quantity.Rate
	finished int
	// first is when the first request of the link was sent.
	first time.Duration
	// forsaken says that the link is not used any more, but where no other one works.
	forsaken bool
	wire
}

// wire is what the network has brought for a link, TLS included. Bytes of
// bodies come a record of TLS at a time, which over a slow link is seldom, and
// behind a lost packet none come: the kernel knows what has arrived.
type wire struct {
	of       *session
	seen     quantity.Bytes // of that session
	received quantity.Bytes
	heard    time.Duration
}

// look takes note of what the link's session has received by now.
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

// leastMeasured is how long a subsegment must have arrived for its rate to
// mean something: that, and two round trips as they are with the queue. Behind
// a lost packet nothing comes for one, and then all at once.
const leastMeasured = transfer.LeastSilence

// rate is the mean over the present subsegment, or the last one while the
// present one is young. total is what has come over the link.
func (w *subsegment) rate(now time.Duration, total quantity.Bytes) quantity.Rate {
	if took := now - w.since; w.current != nil && !w.current.complete() && !w.current.dropped && took >= w.least {
		return (total - w.had).Per(took)
	}
	return w.goodput
}

// follow takes note of bytes that arrived for a request of the link.
func (w *subsegment) follow(c *connection, r *request, now time.Duration) {
	if w.current == nil || w.current != r && (w.current.complete() || w.current.dropped) {
		// What came with the first bytes took a time that is not known, or
		// belongs to the wait for them.
		w.measureFrom(c, r, now)
	}
	if w.current != r || !r.complete() {
		return
	}
	rest, took, pace := c.link.Meter.Total()-w.had, now-w.since, c.pace.Rate(now)
	// A small one may be there with its first bytes: the rest says nothing.
	measured := took >= w.least && 2*rest >= r.received
	switch {
	case measured:
		w.goodput = rest.Per(took)
		w.finished++
	case w.goodput == 0 && pace > 0:
		w.goodput = pace
		w.finished++
	}
	// The next one was asked for in time: the link has gone on with it, also
	// while its bytes wait for one that was lost. One that took too short is
	// measured with it.
	if next := c.newest; next != nil && next != r && now-next.issued >= c.rtt.Min {
		if measured {
			w.measureFrom(c, next, now)
		}
		w.current = next
	}
}

// measureFrom measures from now on how fast a request arrives.
func (w *subsegment) measureFrom(c *connection, r *request, now time.Duration) {
	c.measure()
	w.current, w.since, w.had, w.least = r, now, c.link.Meter.Total(), max(leastMeasured, 2*c.rtt.Last)
}
