package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// hedger has ranges requested twice.
type hedger struct{ view requestView }

// late has a link that nothing is left for request again what another one
// still owes, if that may well come later: the last bytes of a link that has
// just gone silent would cost more than any that come twice. Whichever request
// is complete first ends the other.
func (h *hedger) late(c *connection, works []schedule.Work, now time.Duration) order {
	stealer := works[c.link.index]
	if stealer.Rate == 0 || len(c.active) > 0 {
		return order{}
	}
	var latest transfer.Latest[victim]
	most := transfer.MostDuplicate(stealer.Rate)
	for _, other := range h.view.all() {
		if other == c || other.link == c.link && !other.isSilent(now) {
			continue
		}
		for _, r := range other.active {
			// What is complete is only being written, and an only answer goes on beyond what it is wanted for.
			if r.left() == 0 || h.view.mayBeOnly(r) || r.left() > most || !h.mayDuplicate(r, other, c) {
				continue
			}
			latest.Offer(victim{other, r}, r.left(), owed(other, r, works[other.link.index], now).End())
		}
	}
	if !latest.IsWorth(stealer) {
		return order{}
	}
	late := latest.Request
	if late.r.duplicate != nil {
		h.endDuplicate(late.r.duplicate, now)
	}
	return repeat(late.of, late.r, false)
}

// owed returns what the rules for free connections may know of a request of c, whose link has
// that work.
func owed(c *connection, r *request, link schedule.Work, now time.Duration) transfer.Owed {
	age := now - r.issued
	isDue := r.received > 0 || age < 2*max(c.delay(), c.rtt.Last)
	return transfer.Owed{
		Work: link, Left: r.left(), Age: age, Comes: isDue && !c.isSilent(now),
		// Where no rate is known, there is none by which slow start could be judged.
		IsFirst: r.received == 0 && link.Arrived == 0 && link.Rate > 0,
		Least:   r.session.hole.filled(now, c.rtt.Last),
	}
}

// repeat orders what a connection's request still owes from another connection, too. A hedge asks again for what
// the first one waits for: the first answer ends the other request.
func repeat(of *connection, r *request, isHedge bool) order {
	return order{Range: ranges.Range{Offset: r.next(), Length: r.left()}, from: of.link.Name, of: r, isHedge: isHedge}
}

// endDuplicate gives up a request that duplicates another one in vain.
func (h *hedger) endDuplicate(r *request, now time.Duration) {
	r.detach()
	h.view.drop(h.of(r), r, now)
}

// mayDuplicate reports whether c may duplicate a request of another connection: if
// none does, or, in vain so far, only one of the same link.
func (h *hedger) mayDuplicate(r *request, of, c *connection) bool {
	if r.duplicate == nil {
		return true
	}
	by := h.of(r.duplicate)
	return !r.isDuplicate && r.duplicate.received == 0 && by != nil && by.link == of.link && c.link != of.link
}

// detach ends the hedging of a request: its duplicate no longer counts for it. Where both
// have the same bytes, those of the request count if it is complete, else those of the
// duplicate.
func (r *request) detach() (duplicate *request) {
	duplicate = r.duplicate
	if duplicate == nil {
		return nil
	}
	loser, later := r, duplicate
	if r.complete() {
		loser = duplicate
	}
	if r.isDuplicate {
		later = r
	}
	loser.surplus, loser.needed = true, later.Offset-loser.Offset
	r.duplicate, duplicate.duplicate, r.isDuplicate, duplicate.isDuplicate = nil, nil, false, false
	return duplicate
}

// endOther ends the duplicate of a request that is complete.
func (h *hedger) endOther(r *request, now time.Duration) {
	duplicate := r.detach()
	if duplicate == nil {
		return
	}
	if c := h.of(duplicate); c != nil {
		h.view.drop(c, duplicate, now)
		if c.newest == nil {
			h.view.request(c)
		}
	}
}

// of is whose request it is; nil if that is not in flight any more.
func (h *hedger) of(r *request) *connection {
	for _, c := range h.view.all() {
		if slices.Contains(c.active, r) {
			return c
		}
	}
	return nil
}

// counted is what counts of what a request received, and the rest is wasted.
func (l *linkState) counted(r *request) {
	if !r.surplus || r.received <= r.needed {
		return
	}
	l.raced += r.received - r.needed
	r.wasted += r.received - r.needed
	r.received = r.needed
}

// endHedge ends the duplicate of a hedged request of which the first bytes have come.
func (h *hedger) endHedge(r *request, now time.Duration) {
	duplicate := r.duplicate
	r.hedged = false
	if duplicate == nil {
		return
	}
	r.duplicate, duplicate.duplicate, r.isDuplicate, duplicate.isDuplicate = nil, nil, false, false
	if c := h.of(duplicate); c != nil {
		h.view.drop(c, duplicate, now)
	}
}

// isHedgeable reports whether a request waits for a server that takes long, so that to
// give it up would be too early.
func (r *request) isHedgeable() bool { return r.received == 0 && r.session.lives() }
