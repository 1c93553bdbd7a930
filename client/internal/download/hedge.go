package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// hedgeLate makes an idle connection duplicate the unfinished request that would end last, if the
// duplicate may well end sooner. To wait for the last bytes of a link that went silent costs more
// than to receive some bytes twice. The request that is complete first ends the other one.
func (d *download) hedgeLate(c *connection, works []schedule.Work, now time.Duration) order {
	stealer := works[c.link.index]
	if stealer.Rate == 0 || len(c.active) > 0 {
		return order{}
	}
	var latest transfer.Latest[victim]
	most := transfer.MostDuplicate(stealer.Rate)
	for _, other := range d.connections {
		if other == c || other.link == c.link && !other.isSilent(now) {
			continue
		}
		for _, r := range other.active {
			// A complete request is only being written. An only answer goes on beyond its wanted bytes.
			if r.left() == 0 || d.mayBeOnly(r) || r.left() > most || !d.mayDuplicate(r, other, c) {
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
		d.endDuplicate(late.r.duplicate, now)
	}
	return repeat(late.of, late.r, false)
}

// leastUnanswered is how long a connection waits for an answer before it sends another request, each time twice as
// long. mostUnanswered is how many it sends.
const (
	leastUnanswered = 5 * time.Second
	mostUnanswered  = 6
)

// isUnanswered reports whether the server, which is there, leaves all requests of the connection without an answer
// for long. Another request may get one.
func (c *connection) isUnanswered(now time.Duration) bool {
	n := len(c.active)
	return n < mostUnanswered && c.awaitsAll() && now-c.active[n-1].issued >= leastUnanswered<<(n-1)
}

// awaitsAll reports whether the connection has requests, of which the server, which is there, has answered none.
func (c *connection) awaitsAll() bool {
	isAnswered := func(r *request) bool { return !r.isHedgeable() }
	return len(c.active) > 0 && !slices.ContainsFunc(c.active, isAnswered)
}

// isStuck reports whether such requests occupy all that a session can send at a time. Each next session may take twice
// as long: the server may only be slow.
func (c *connection) isStuck(now time.Duration) bool {
	n := len(c.active)
	return c.session.IsFull(n) && c.isUnanswered(now) && now-c.active[n-1].issued >= leastUnanswered<<(n-1+min(c.failures, 6))
}

// hedgeUnanswered makes a connection without answers duplicate the oldest request that the server leaves without an answer, whatever
// the rates are: the server may never answer it. If the server does not answer the duplicate either, another one takes
// its place, each time after twice the time.
func (d *download) hedgeUnanswered(c *connection, now time.Duration) order {
	if len(c.active) > 0 && !c.isUnanswered(now) {
		return order{}
	}
	var oldest victim
	for _, other := range d.connections {
		for _, r := range other.active {
			isTried := r.isDuplicate || r.duplicate != nil && !d.isLate(r.duplicate, r, now)
			if r.isHedgeable() && !isTried && (oldest.r == nil || r.issued < oldest.r.issued) {
				oldest = victim{other, r}
			}
		}
	}
	switch {
	case oldest.r == nil:
		return order{}
	case oldest.r.duplicate != nil:
		d.endDuplicate(oldest.r.duplicate, now)
	}
	return repeat(oldest.of, oldest.r, true)
}

// isLate reports whether the duplicate of a request has no answer either for as long as the request had none before it,
// and for its connection's patience: two links may begin both at once, and would take turns without end.
func (d *download) isLate(duplicate, r *request, now time.Duration) bool {
	by := d.holder(duplicate)
	return by != nil && duplicate.isHedgeable() && now-duplicate.issued >= max(duplicate.issued-r.issued, by.patience())
}

// owed describes a request of c for the rules of idle connections. link is the work of c's link.
func owed(c *connection, r *request, link schedule.Work, now time.Duration) transfer.Owed {
	age := now - r.issued
	isDue := r.received > 0 || age < 2*max(c.delay(), c.rtt.Last)
	return transfer.Owed{
		Work: link, Left: r.left(), Age: age, Comes: isDue && !c.isSilent(now),
		// Without a known rate nothing shows how far slow start is.
		IsFirst: r.received == 0 && link.Arrived == 0 && link.Rate > 0,
		Least:   r.session.hole.filled(now, c.rtt.Last),
	}
}

// repeat is an order for the unfinished bytes of another connection's request. With isHedge the first byte of one of
// both ends the other one.
func repeat(of *connection, r *request, isHedge bool) order {
	return order{Range: r.rest(), from: of.link.Name, of: r, isHedge: isHedge}
}

// endDuplicate gives up a duplicate that was of no use.
func (d *download) endDuplicate(r *request, now time.Duration) {
	r.detach()
	d.drop(d.holder(r), r, now)
}

// mayDuplicate reports whether c may duplicate a request of another connection: if
// none does, or only one of the same link, which has no answer yet.
func (d *download) mayDuplicate(r *request, of, c *connection) bool {
	if r.duplicate == nil {
		return true
	}
	by := d.holder(r.duplicate)
	return !r.isDuplicate && r.duplicate.received == 0 && by != nil && by.link == of.link && c.link != of.link
}

// detach ends the hedging of a request: its duplicate no longer counts for it. Bytes that both
// have count for the request if it is complete, else for the duplicate.
func (r *request) detach() (duplicate *request) {
	if duplicate = r.duplicate; duplicate == nil {
		return nil
	}
	loser, later := r, duplicate
	if r.complete() {
		loser = duplicate
	}
	if r.isDuplicate {
		later = r
	}
	loser.isSplit, loser.needed = true, later.Offset-loser.Offset
	return r.unlink()
}

// unlink makes a request and its duplicate know nothing of each other.
func (r *request) unlink() (duplicate *request) {
	if duplicate = r.duplicate; duplicate != nil {
		r.duplicate, duplicate.duplicate, r.isDuplicate, duplicate.isDuplicate = nil, nil, false, false
	}
	return duplicate
}

// endOther ends the duplicate of a request that is complete.
func (d *download) endOther(r *request, now time.Duration) {
	duplicate := r.detach()
	if duplicate == nil {
		return
	}
	if c := d.holder(duplicate); c != nil {
		d.drop(c, duplicate, now)
		if c.newest == nil {
			d.request(c)
		}
	}
}

// holder returns the connection that has the request in flight; nil if there is none.
func (d *download) holder(r *request) *connection {
	for _, c := range d.connections {
		if slices.Contains(c.active, r) {
			return c
		}
	}
	return nil
}

// endHedge gives up the duplicate of a hedged request whose first bytes arrived.
func (d *download) endHedge(r *request, now time.Duration) {
	r.hedged = false
	duplicate := r.unlink()
	if c := d.holder(duplicate); c != nil {
		d.drop(c, duplicate, now)
	}
}

// isHedgeable reports whether a request waits for a server that is late but there: it is too early
// to give the request up.
func (r *request) isHedgeable() bool { return r.received == 0 && r.session.lives() }
