package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/transfer"
)

// goodput measures the rate of the subsegments that arrive over a link (GreenBag IV.B).
type goodput struct {
	// current is the request whose bytes arrive now. It is measured since that time, when the
	// link had received had bytes. Its rate means nothing before the time least has passed.
	current *request
	since   time.Duration
	had     quantity.Bytes
	least   time.Duration
	// last is the rate of the last complete request that was long enough to measure, and
	// finished how many such requests there were.
	last     quantity.Rate
	finished int
}

// leastMeasured is how long a subsegment must arrive at least until its rate is meaningful; so are
// two round trips, queue included. Behind a lost packet nothing arrives for a round trip, and then
// all at once.
const leastMeasured = transfer.LeastSilence

// rate is the mean over the present subsegment, or over the last one while the present one is
// young. total is how many bytes the link has received.
func (g *goodput) rate(now time.Duration, total quantity.Bytes) quantity.Rate {
	if took := now - g.since; g.current != nil && g.current.goesOn() && took >= g.least {
		return (total - g.had).Per(took)
	}
	return g.last
}

// follow notes bytes that arrived for a request.
func (g *goodput) follow(l *publishedLink, r *request, now time.Duration) {
	if g.current == nil || g.current != r && !g.current.goesOn() {
		// How long the first bytes took to arrive is not known.
		g.measureFrom(l, r, now)
	}
	if g.current != r || !r.complete() {
		return
	}
	rest, took, pace := l.Meter.Total()-g.had, now-g.since, l.pace.Rate(now)
	// Most of a small request may arrive with its first bytes: then its rate means nothing.
	measured := took >= g.least && 2*rest >= r.received
	switch {
	case measured:
		g.last = rest.Per(took)
		g.finished++
	case g.last == 0 && pace > 0:
		g.last = pace
		g.finished++
	}
	// If the next request was sent in time, the link goes on with it, even while its bytes wait
	// behind a lost packet. A request that was too short is measured together with it.
	if next := l.newest; next != nil && next != r && now-next.issued >= l.rtt.Min {
		if measured {
			g.measureFrom(l, next, now)
		}
		g.current = next
	}
}

// measureFrom begins to measure the rate of a request.
func (g *goodput) measureFrom(l *publishedLink, r *request, now time.Duration) {
	l.measure()
	g.current, g.since, g.had, g.least = r, now, l.Meter.Total(), max(leastMeasured, 2*l.rtt.Last)
}
