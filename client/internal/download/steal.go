package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// victim is a request from which other connections may take bytes.
type victim struct {
	of *connection
	r  *request
}

// steal takes unfinished bytes from the link that would end last.
func (d *download) steal(c *connection, works []schedule.Work, now time.Duration) order {
	d.victims.Reset(len(works))
	for _, other := range d.connections {
		x := other.link.index
		for _, r := range other.active {
			d.offer(x, victim{other, r}, r.left(), works[x], now)
		}
	}
	return d.takeOver(c, c.link.index, works, now)
}

// stealWithin is as steal, between the connections of a link; each is the work of every connection.
// With a queue at the link, to move bytes between its connections gains nothing.
func (d *download) stealWithin(c *connection, each []schedule.Work, now time.Duration) order {
	if c.link.isQueued(now) {
		return order{}
	}
	d.victims.Reset(len(each))
	for x, other := range d.connections {
		if other.link != c.link {
			continue
		}
		sent := transfer.OnItsWay(each[x].Rate, other.rtt.Last)
		for _, r := range other.active {
			d.offer(x, victim{other, r}, r.left()-sent, each[x], now)
		}
	}
	return d.takeOver(c, c.index, each, now)
}

// offer offers so many bytes of a request to takeOver, unless another connection duplicates the
// request. work is that of x, the link or connection of the request.
func (d *download) offer(x int, v victim, bytes quantity.Bytes, work schedule.Work, now time.Duration) {
	// A new request without an answer stays where it is: else connections would take its bytes
	// from each other for the same reason.
	c, age := v.of, now-v.r.issued
	unknown := work.Usable && work.Rate == 0
	isYoung := v.r.received == 0 && (d.mayBeOnly(v.r) || unknown && age < c.patience() || c.link.HasSeveral() && age < c.delay())
	if d.mayBeOnly(v.r) {
		bytes = min(bytes, v.r.left()-1)
	}
	if !isYoung && v.r.duplicate == nil && bytes > 0 {
		d.victims.Offer(x, v, bytes)
	}
}

// takeOver gives the connection, which is x in works, bytes of the victim that would end last.
func (d *download) takeOver(c *connection, x int, works []schedule.Work, now time.Duration) order {
	chosen, y, bytes := d.victims.Choose(x, works)
	if bytes == 0 {
		return order{}
	}
	if c.onTrial() {
		bytes = min(bytes, schedule.FirstOrder)
	}
	other, r := chosen.of, chosen.r
	if c.link.isSlowToAnswer && works[y].Usable && (len(c.active) > 0 || r.received > 0 && now-r.first < schedule.PaceWindow) {
		// The other connection would take the bytes back before they arrive, or its rate is not known yet.
		return order{}
	}
	if bytes == r.left() && r.isHedgeable() {
		return repeat(other, r, true)
	}
	stolen := order{Range: ranges.Range{Offset: r.limit - bytes, Length: bytes}, from: other.link.Name}
	if bytes == r.left() {
		d.drop(other, r, now)
	} else {
		other.shrink(r, bytes)
		d.await(other)
	}
	switch {
	case !works[y].Usable || works[y].Rate == 0:
		d.recordFailover(&other.link.commonLink, c.link.Name, bytes, stalled, now)
		if len(other.active) == 0 && other.session != nil && !other.suspect {
			// The connection has no request left that could show that it works.
			other.suspect = true
			other.failures++
		}
	case other.isSlow(now):
		d.recordFailover(&other.link.commonLink, c.link.Name, bytes, slow, now)
	}
	return stolen
}

// urgent takes the next bytes of a reader in order from a connection that delays them.
func (d *download) urgent(c *connection, now time.Duration) order {
	if d.window == nil {
		return order{}
	}
	first := d.payload.Missing().Offset
	for _, other := range d.connections {
		reason := ""
		switch {
		case other == c:
		case other.suspect || other.link.down:
			reason = stalled
		case other.isSlow(now) && !c.isSlow(now):
			reason = slow
		}
		if reason == "" {
			continue
		}
		for _, r := range other.active {
			if d.mayBeOnly(r) {
				continue
			}
			// Two slow links would take the bytes from each other for ever.
			young := reason == slow && now-r.issued < other.patience()
			if r.Offset <= first && first < r.limit && r.left() > 0 && !young && r.duplicate == nil &&
				(reason != slow || d.isSooner(c, r, now)) {
				if reason == slow && r.isHedgeable() {
					return repeat(other, r, true)
				}
				left := d.drop(other, r, now)
				d.recordFailover(&other.link.commonLink, c.link.Name, left.Length, reason, now)
				return order{Range: left, from: other.link.Name}
			}
		}
	}
	return order{}
}

// isSooner reports whether a connection would bring the rest of another one's request sooner than that one, by the rate
// of that request so far. If the reader has enough bytes until then, it reports false.
func (d *download) isSooner(c *connection, r *request, now time.Duration) bool {
	came, due := r.coming()
	late := transfer.Owed{Work: schedule.Work{Rate: came.Per(now - r.issued), Left: due}, Comes: true}
	end, stealer := late.End(), d.works(now)[c.index]
	return end >= d.waits && stealer.Rate > 0 && stealer.Sooner(r.left(), end)
}
