package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// stealer takes work over from a connection that would end later.
type stealer struct {
	view      requestView
	estimates *estimates
	victims   transfer.Victims[victim]
}

// victim is a request of which others may take a part.
type victim struct {
	of *connection
	r  *request
}

// steal takes over a part of what the link that ends last has to deliver.
func (t *stealer) steal(c *connection, works []schedule.Work, now time.Duration) order {
	t.victims.Reset(len(works))
	for _, other := range t.view.all() {
		x := other.link.index
		for _, r := range other.active {
			t.offer(x, victim{other, r}, r.left(), works[x], now)
		}
	}
	return t.takeOver(c, c.link.index, works, now)
}

// balance is as steal, between the connections of a link; each is the work of every connection.
// Where packets wait at the link, each brings what the others do not.
func (t *stealer) balance(c *connection, each []schedule.Work, now time.Duration) order {
	if c.link.isQueued(now) {
		return order{}
	}
	t.victims.Reset(len(each))
	for x, other := range t.view.all() {
		if other.link != c.link {
			continue
		}
		sent := transfer.OnItsWay(each[x].Rate, other.rtt.Last)
		for _, r := range other.active {
			t.offer(x, victim{other, r}, r.left()-sent, each[x], now)
		}
	}
	return t.takeOver(c, c.index, each, now)
}

// offer offers so many bytes of a request of x, which has that work, unless another
// connection duplicates the request.
func (t *stealer) offer(x int, v victim, bytes quantity.Bytes, work schedule.Work, now time.Duration) {
	// A request that is just sent is not taken over because nothing came yet: it
	// would be taken back for the same reason.
	c, age := v.of, now-v.r.issued
	unknown := work.Usable && work.Rate == 0
	isYoung := v.r.received == 0 && (v.r.isWhole || unknown && age < c.patience() || c.link.HasSeveral() && age < c.delay())
	if t.view.mayBeOnly(v.r) {
		bytes = min(bytes, v.r.left()-1)
	}
	if !isYoung && v.r.duplicate == nil && bytes > 0 {
		t.victims.Offer(x, v, bytes)
	}
}

// takeOver gives the connection, which is x, a part of what the one that ends last has
// to deliver.
func (t *stealer) takeOver(c *connection, x int, works []schedule.Work, now time.Duration) order {
	chosen, y, bytes := t.victims.Choose(x, works)
	if bytes == 0 {
		return order{}
	}
	if c.onTrial() {
		bytes = min(bytes, trial)
	}
	other, r := chosen.of, chosen.r
	if c.link.isSlowToAnswer && works[y].Usable && (len(c.active) > 0 || r.received > 0 && now-r.first < transfer.PaceWindow) {
		// It would be taken back before it came, or how fast the other one is, is not
		// known yet.
		return order{}
	}
	if bytes == r.left() && r.isHedgeable() {
		return repeat(other, r, true)
	}
	stolen := order{Range: ranges.Range{Offset: r.limit - bytes, Length: bytes}, from: other.link.Name}
	if bytes == r.left() {
		t.view.drop(other, r, now)
	} else {
		t.view.shrink(other, r, bytes)
	}
	switch {
	case !works[y].Usable || works[y].Rate == 0:
		t.view.failedOver(other, c, bytes, stalled, now)
		if len(other.active) == 0 && other.session != nil && !other.suspect {
			// It has nothing any more by which it could prove itself.
			other.suspect = true
			other.failures++
			other.wake()
		}
	case other.isSlow(now):
		t.view.failedOver(other, c, bytes, slow, now)
	}
	return stolen
}

// urgent takes what a sink needs next from a link that keeps it waiting.
func (t *stealer) urgent(c *connection, now time.Duration) order {
	first, isRead := t.view.awaited()
	if !isRead {
		return order{}
	}
	for _, other := range t.view.all() {
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
			if t.view.mayBeOnly(r) {
				continue
			}
			// Two slow links would take it from each other for ever, and none
			// of it would come.
			young := reason == slow && now-r.issued < other.patience()
			if r.Offset <= first && first < r.limit && r.left() > 0 && !young && r.duplicate == nil &&
				(reason != slow || t.isSooner(c, r, now)) {
				if reason == slow && r.isHedgeable() {
					return repeat(other, r, true)
				}
				left := t.view.drop(other, r, now)
				t.view.failedOver(other, c, left.Length, reason, now)
				return order{Range: left, from: other.link.Name}
			}
		}
	}
	return order{}
}

// isSooner reports whether a connection brings the rest of another one's request
// sooner than that one does, by what has come there since it was sent, and sooner than
// a reader would miss it.
func (t *stealer) isSooner(c *connection, r *request, now time.Duration) bool {
	came, due := r.coming()
	late := transfer.Owed{Work: schedule.Work{Rate: came.Per(now - r.issued), Left: due}, Comes: true}
	end, stealer := late.End(), t.estimates.works(now)[c.index]
	return end >= t.view.waits() && stealer.Rate > 0 && stealer.Sooner(r.left(), end)
}
