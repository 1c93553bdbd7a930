package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// steal takes over a part of what the link that ends last has to deliver.
func (d withRescue) steal(c *connection, works []schedule.Work, now time.Duration) (ranges.Range, string, bool) {
	victims := d.victims(len(works))
	for _, other := range d.connections {
		x := other.link.index
		for _, r := range other.active {
			victims.add(x, victim{other, r, r.left()}, works[x], now)
		}
	}
	return d.take(c, c.link.index, victims, works, now)
}

// onItsWay is how many round trips' worth of bytes the server may have sent
// already, or is about to, and a connection of the same link would bring later.
const onItsWay = 4

// balance is as steal, between the connections of a link; each is the work of every connection.
// Where packets wait at the link, each brings what the others do not.
func (d withConnections) balance(c *connection, each []schedule.Work, now time.Duration) (ranges.Range, string, bool) {
	if c.link.isQueued(now) {
		return ranges.Range{}, "", false
	}
	victims := d.victims(len(each))
	for x, other := range d.connections {
		if other.link != c.link {
			continue
		}
		sent := quantity.Bytes((onItsWay * each[x].Rate).Over(other.rtt.Last))
		for _, r := range other.active {
			victims.add(x, victim{other, r, r.left() - sent}, each[x], now)
		}
	}
	return d.take(c, c.index, victims, each, now)
}

// victim is a request of which others may take so much.
type victim struct {
	of    *connection
	r     *request
	bytes quantity.Bytes
}

// victims is the largest of each that has work.
type victims struct {
	largest []quantity.Bytes
	of      []victim
}

func (d *download) victims(n int) victims {
	return victims{cleared(&d.scratch.largest, n), cleared(&d.scratch.victims, n)}
}

// add offers a request of x, which has to do that.
func (v victims) add(x int, offered victim, work schedule.Work, now time.Duration) {
	// A request that is just sent is not taken over because nothing came yet: it
	// would be taken back for the same reason.
	c, age := offered.of, now-offered.r.issued
	unknown := work.Usable && work.Rate == 0
	if offered.r.received == 0 && (unknown && age < c.patience() || c.link.HasSeveral() && age < c.delay()) {
		return
	}
	if offered.bytes > v.largest[x] && offered.r.twin == nil {
		v.largest[x], v.of[x] = offered.bytes, offered
	}
}

// take gives the connection, which is x, a part of what the one that ends last has
// to deliver.
func (d withRescue) take(c *connection, x int, from victims, works []schedule.Work, now time.Duration) (ranges.Range, string, bool) {
	y, bytes := schedule.Steal(x, works, from.largest)
	if bytes == 0 {
		return ranges.Range{}, "", false
	}
	if c.onTrial() {
		bytes = min(bytes, trial)
	}
	other, r := from.of[y].of, from.of[y].r
	if c.link.takesLong && works[y].Usable && (len(c.active) > 0 || r.received > 0 && now-r.first < transfer.PaceWindow) {
		// It would be taken back before it came, or how fast the other one is, is not
		// known yet.
		return ranges.Range{}, "", false
	}
	if bytes == r.left() && r.isHedgeable() {
		d.hedge(c, other, r, now)
		return ranges.Range{}, "", false
	}
	stolen := ranges.Range{Offset: r.limit - bytes, Length: bytes}
	if bytes == r.left() {
		d.drop(other, r, now)
	} else {
		d.shrink(other, r, bytes)
		d.await(other)
	}
	switch {
	case !works[y].Usable || works[y].Rate == 0:
		d.failedOver(other, c, bytes, stalled, now)
		if len(other.active) == 0 && other.session != nil && !other.suspect {
			// It has nothing any more by which it could prove itself.
			other.suspect = true
			other.failures++
			other.wake()
		}
	case other.isSlow(now):
		d.failedOver(other, c, bytes, slow, now)
	}
	return stolen, other.link.Name, true
}
