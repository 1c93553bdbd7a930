package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
)

// This file chooses a connection's next request. While bytes are missing, no link that could help is
// idle: it gets what the scheduler gives it, else free bytes, else bytes of the request that would
// end last.

// next is the connection's next request: none if the plan does not use its link.
func (d *download) next(c *connection, now time.Duration) order {
	switch {
	case d.plan != nil:
		return d.plan.next(c, now)
	case d.Connections != nil:
		return d.nextOfSeveral(c, now)
	}
	return d.nextOfOne(c, now)
}

// nextOfOne is the next request of a link with one connection: what the reader waits for, else what
// the scheduler gives the link of the free bytes, at most its share, else bytes of another
// connection's request.
func (d *download) nextOfOne(c *connection, now time.Duration) order {
	if !c.usable(now) {
		return order{}
	}
	if urgent := d.urgent(c, now); urgent.Length > 0 {
		return urgent
	}
	works := d.works(now)
	free := d.free()
	if free == 0 {
		if stolen := d.steal(c, works, now); stolen.Length > 0 {
			return stolen
		}
		return d.hedgeUnanswered(c, now)
	}
	size := d.nextSize(c, now)
	share := schedule.Share(c.index, d.exceptLate(c.link, works), free)
	if size <= 0 || c.link.isSlowToAnswer {
		size = share
	}
	size = min(max(size, c.pipe(now)), share)
	if c.onTrial() {
		size = min(size, schedule.FirstOrder)
	}
	if size < schedule.MinimumRequest {
		if !schedule.Largest(c.index, works, free) {
			return order{}
		}
		size = schedule.MinimumRequest
	}
	return d.take(size)
}

// nextOfSeveral is as nextOfOne, but a connection gets a share of its link's bytes. If no bytes are
// free, it may duplicate an unfinished request of another connection.
func (d *download) nextOfSeveral(c *connection, now time.Duration) order {
	if !c.usable(now) || c.leaving {
		return order{}
	}
	if urgent := d.urgent(c, now); urgent.Length > 0 {
		return urgent
	}
	each := d.measured(now)
	works := d.merged(each, now)
	free := d.free()
	if free == 0 {
		if stolen := d.steal(c, works, now); stolen.Length > 0 {
			return stolen
		}
		if balanced := d.stealWithin(c, each, now); balanced.Length > 0 || d.payload.Free(d.part.End()) > 0 {
			return balanced
		}
		if late := d.hedgeLate(c, works, now); late.Length > 0 {
			return late
		}
		return d.hedgeUnanswered(c, now)
	}
	link := d.exceptLate(c.link, works)[c.link.index]
	size := max(d.nextSize(c, now), c.pipe(now))
	if c.link.isSlowToAnswer {
		size = free
	}
	size = min(size, schedule.ConnectionShare(each[c.index], link, schedule.Share(c.link.index, works, free)))
	if c.onTrial() {
		size = min(size, schedule.FirstOrder)
	}
	if size < schedule.MinimumRequest {
		if len(c.active) > 0 && !c.isUnanswered(now) || !schedule.Largest(c.link.index, works, free) {
			return order{}
		}
		size = schedule.MinimumRequest
	}
	return d.take(size)
}

// nextSize asks the scheduler how many bytes a connection should request. A scheduler of
// links with several connections is told only of that connection.
func (d *download) nextSize(c *connection, now time.Duration) quantity.Bytes {
	known := d.knownPayload(d.known)
	if d.Connections != nil {
		known.Links = append(known.Links, c.known(now))
		d.known = known.Links
		return d.Scheduler.Next(0, known)
	}
	for _, other := range d.connections {
		other.measure()
		known.Links = append(known.Links, other.known(now))
	}
	d.known = known.Links
	return d.Scheduler.Next(c.index, known)
}
