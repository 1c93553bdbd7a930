package upload

import (
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// shares decides which connection sends which range.
type shares struct{ u *upload }

// next is the range that a connection sends next, and the link from which it takes the range, if any.
func (s shares) next(c *connection, now time.Duration) (r ranges.Range, from string, ok bool) {
	first := s.u.free.First()
	if first.Length == 0 {
		return s.late(c, now)
	}
	size := s.u.Size
	if !s.u.whole {
		size = s.size(c, now)
	}
	if size <= 0 {
		return r, "", false
	}
	first.Length = min(first.Length, size)
	return first, "", true
}

// size is how many bytes a connection sends next. The scheduler decides. With rescue it is at most the
// connection's share of the rest, so that all links end together, and that share if the scheduler
// has no more bytes for the link.
func (s shares) size(c *connection, now time.Duration) quantity.Bytes {
	known := schedule.Known{Payload: s.u.Size}
	x := 0
	if c.link.HasSeveral() {
		known.Links = append(known.Links, c.known(now))
	} else {
		x = c.link.index
		for _, l := range s.u.links {
			known.Links = append(known.Links, l.known(now))
		}
	}
	size := s.u.Scheduler.Next(x, known)
	if !s.u.Rescue {
		return size
	}
	works, free := s.works(now), s.u.free.Bytes()
	share := schedule.Share(c.link.index, works, free)
	if c.link.HasSeveral() {
		share = schedule.ConnectionShare(c.work(now), works[c.link.index], share)
	}
	switch {
	case size <= 0 && s.awaits():
		return 0 // The scheduler leaves the rest to a link that is not connected yet.
	case size <= 0:
		size = share
	}
	size = min(size, share)
	if size < schedule.MinimumRequest {
		if len(c.open(now)) > 0 || !schedule.Largest(c.link.index, works, free) {
			return 0
		}
		size = schedule.MinimumRequest
	}
	return size
}

// awaits reports whether a link connects for the first time.
func (s shares) awaits() bool {
	return slices.ContainsFunc(s.u.links, func(l *linkState) bool {
		return l.problem == nil && !slices.ContainsFunc(l.connections, func(c *connection) bool { return c.sockets != nil })
	})
}

// works returns the outstanding work of each link. A link without a known rate gets a low one.
func (s shares) works(now time.Duration) []schedule.Work {
	works := make([]schedule.Work, len(s.u.links))
	for x, l := range s.u.links {
		works[x] = l.work(now)
	}
	transfer.GuessRates(works, func(x int) (isFresh bool, bandwidth, shown quantity.Rate) {
		return true, s.u.links[x].Bandwidth, s.u.links[x].Shown.Rate()
	})
	return works
}

// late is the range of another connection with the latest expected end, if this idle connection would
// send it sooner. Both send it, and the first confirmation counts. A connection repeats its own range
// only if that is lost.
func (s shares) late(c *connection, now time.Duration) (r ranges.Range, from string, ok bool) {
	if !s.u.Rescue || s.u.whole || c.isStalled(now) || c.expects(now) {
		return r, "", false
	}
	stealer := c.work(now)
	if stealer.Rate == 0 {
		stealer.Rate = s.works(now)[c.link.index].Rate / quantity.Rate(len(c.link.connections))
	}
	var latest transfer.Latest[*request]
	for _, l := range s.u.links {
		for _, other := range l.connections {
			for _, one := range other.active {
				if l == c.link && !other.isStalled(now) && !other.isLost(one, now) {
					continue
				}
				if end := s.ends(one.Range, c, now); stealer.Sooner(one.Length, end) {
					latest.Offer(one, one.Length, end)
				}
			}
		}
	}
	if late := latest.Request; late != nil {
		return late.Range, late.connection.link.Name, true
	}
	return r, "", false
}

// ends is in how many seconds the first of the connections that send a range will have brought it. It
// is 0 if this connection sends it itself, or if another one repeats it that may succeed.
func (s shares) ends(r ranges.Range, but *connection, now time.Duration) float64 {
	ends, count := math.Inf(1), 0
	for _, l := range s.u.links {
		for _, c := range l.connections {
			for i, one := range c.active {
				if one.Range != r {
					continue
				}
				if c == but && !c.isLost(one, now) {
					return 0
				}
				count++
				ends = min(ends, c.ends(i, now))
			}
		}
	}
	if count > 1 && !math.IsInf(ends, 1) {
		return 0
	}
	return ends
}

// isStalled reports whether no pending bytes got through for longer than usual.
func (c *connection) isStalled(now time.Duration) bool {
	return c.conn == nil || c.left() > 0 && transfer.IsQuiet(now-c.heard, c.rtt)
}

// isUnanswered reports whether the server has not answered the newest request for long.
func (c *connection) isUnanswered(now time.Duration) bool {
	open := c.open(now)
	return len(open) > 0 && c.isOverdue(open[len(open)-1], c.patience(), now)
}

// ends is in how many seconds the connection will have brought its request of that number.
func (c *connection) ends(number int, now time.Duration) float64 {
	one := c.active[number]
	left := c.left()
	for _, later := range c.active[number+1:] {
		left -= later.Length
	}
	work := c.work(now)
	work.Left, work.Rate = max(left, 0), c.pace.Rate(now)
	age := now - one.issued
	isOverdue := work.Rate == 0 && age.Seconds() > 2*work.First(work.Left)
	return transfer.Owed{
		Work: work, Left: work.Left, Age: age,
		Comes:   !isOverdue && !c.isStalled(now) && !c.isUnanswered(now) && !c.isLost(one, now),
		IsFirst: work.Rate == 0,
		Least:   c.leastRTT, Trip: c.leastRTT, // A range counts when the server has confirmed it.
	}.End()
}
