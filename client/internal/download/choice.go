package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
)

// This file chooses a connection's next request. While bytes are missing, no link that could help is idle: it gets what
// the scheduler gives it, else free bytes, else bytes of the request that would end last.

// choose chooses what the reader waits for, else what the scheduler gives the connection of the free bytes, at most its
// share, else bytes of another connection's request.
func (d *download) choose(c *connection, now time.Duration) order {
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
		return d.chooseTaken(c, each, works, now)
	}
	size := d.nextSize(c, now)
	link := d.exceptLate(c.link, works)[c.link.index]
	if size <= 0 || c.link.isSlowToAnswer {
		size = free
	}
	size = max(size, c.pipe(now))
	size = min(size, schedule.ConnectionShare(each[c.index], link, schedule.Share(c.link.index, works, free)))
	if c.onTrial() {
		size = min(size, schedule.FirstOrder)
	}
	if size < schedule.MinimumRequest {
		isBusy := d.Connections != nil && len(c.active) > 0 && !c.isUnanswered(now)
		if isBusy || !schedule.Largest(c.link.index, works, free) {
			return order{}
		}
		size = schedule.MinimumRequest
	}
	return d.take(size)
}

// chooseTaken chooses bytes of another connection's request, when none are free.
func (d *download) chooseTaken(c *connection, each, works []schedule.Work, now time.Duration) order {
	if stolen := d.steal(c, works, now); stolen.Length > 0 {
		return stolen
	}
	if d.Connections != nil {
		if balanced := d.stealWithin(c, each, now); balanced.Length > 0 || d.payload.Free(d.part.End()) > 0 {
			return balanced
		}
		if late := d.hedgeLate(c, works, now); late.Length > 0 {
			return late
		}
	}
	return d.hedgeUnanswered(c, now)
}

// nextSize asks the scheduler how many bytes a connection should request. A scheduler of
// links with several connections is told only of that connection.
func (d *download) nextSize(c *connection, now time.Duration) quantity.Bytes {
	known := d.knownPayload(d.known)
	if d.Connections != nil {
		known.Links = append(known.Links, c.known(&c.link.commonLink, now))
		d.known = known.Links
		return d.Scheduler.Next(0, known)
	}
	for _, other := range d.connections {
		other.measure()
		known.Links = append(known.Links, other.known(&other.link.commonLink, now))
	}
	d.known = known.Links
	return d.Scheduler.Next(c.index, known)
}
