package download

import (
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// order is a connection's next request. The zero order is none.
type order struct {
	ranges.Range
	// from is the link that the range was taken from, if any.
	from string
	// of is the request of another connection that this order duplicates, if any. With isHedge the first byte
	// of one of both ends the other one, else the last byte.
	of      *request
	isHedge bool
}

// request sends the connection's next request, if there is one for it.
func (d *download) request(c *connection) {
	if d.isOver {
		return
	}
	if !c.isFirst() && !d.balance.CanPay(0, d.openBytes()) {
		return // A server that sends so many unwanted bytes gets few requests at a time.
	}
	now := d.now
	var next order
	if d.plan != nil {
		next = d.plan.next(c, now)
	} else {
		next = d.choose(c, now)
	}
	if next.Length == 0 {
		return
	}
	if d.isUnproven() {
		d.fail(c.link.Name, errUnproven)
		return
	}
	if r := c.whole(); r != nil && d.mayExtend(c, r, next) {
		d.extend(c, r, next.Length)
		return
	}
	d.issue(c, next, nil, now)
}

// mayExtend reports whether the answer to the request for the whole file may go on with an order. Its bytes behind
// a duplicated rest would not count, and HTTP/2 requests a range at once.
func (d *download) mayExtend(c *connection, r *request, next order) bool {
	isDuplicated := r.duplicate != nil || next.of != nil
	follows := r.session == c.session && r.limit == next.Offset
	return follows && !isDuplicated && (!d.repeats || !c.session.AsksAtOnce())
}

// extend makes the answer to the request for the whole file go on for so many bytes.
func (d *download) extend(c *connection, r *request, bytes quantity.Bytes) {
	c.shrink(r, -bytes)
	c.newest = r
	d.await(c)
	d.do(notifyWorker{r.more})
}

// goOn makes the only answer of the URL bring the bytes that the server refuses to other requests.
func (d *download) goOn() {
	for _, c := range d.connections {
		if r := c.whole(); r != nil && c.link.isSpent && d.isOnly(r) {
			d.extendFree(c, r)
		}
	}
}

// extendFree makes the answer to the request for the whole file go on with the free bytes behind it. It reports
// whether there are any.
func (d *download) extendFree(c *connection, r *request) bool {
	if r.duplicate != nil {
		return false
	}
	next := ranges.Range{Offset: r.limit, Length: min(r.End(), d.limit()) - r.limit}
	free := d.payload.TakeBeginning(next)
	if free > 0 {
		d.extend(c, r, free)
	}
	return free > 0
}

// mayRead is how many bytes of the answer to the request for the whole file the engine may read now. The engine keeps the
// last wanted byte back until another request shows whether the URL works more than once, or until the answer is to go
// on. It asks again after the patience at the latest, which is 0 if the byte is not kept back: a server may serve one
// request after the other.
func (d *download) mayRead(c *connection, r *request) (bytes int, patience time.Duration) {
	if d.isProbed(r) && r.left() <= 1 && (c.newest == r || c.newest == nil) {
		d.request(c)
	}
	if d.isProbed(r) && r.left() <= 1 && d.isSerial {
		d.takeBack(c, r)
	}
	r.isHeld = d.isProbed(r) && r.left() <= 1
	switch {
	case r.isHeld:
		return 0, max(transfer.LeastSilence, 2*c.rtt.Last)
	case d.isProbed(r):
		return int(r.left()) - 1, 0
	}
	return math.MaxInt, 0
}

// takeBack makes the answer to the request for the whole file bring the bytes of a request that has no answer, or the
// free bytes. It reports whether there are any.
func (d *download) takeBack(c *connection, r *request) bool {
	if !d.isProbed(r) || r.duplicate != nil {
		return false
	}
	for _, other := range d.connections {
		for _, next := range other.active {
			if next.Offset == r.limit && next.received == 0 {
				left := d.drop(other, next, d.now)
				d.release(next, left)
				d.extend(c, r, d.payload.TakeBeginning(left))
				return true
			}
		}
	}
	return d.extendFree(c, r) // Requests for these bytes may fail again and again.
}

// isProbed reports whether another request may still show that the answer to this one has to go on.
func (d *download) isProbed(r *request) bool {
	return !d.repeats && !r.dropped && d.payload.Lacks(r.limit)
}

// mayBeOnly reports whether this request may have the URL's only answer: no other request was answered.
func (d *download) mayBeOnly(r *request) bool { return r.isWhole && !d.repeats }

// isOnly reports whether such an answer goes on. The engine gives up one that is silent for long (mostPause).
func (d *download) isOnly(r *request) bool {
	return d.mayBeOnly(r) && r.goesOn() && d.now-r.session.heardAt < d.mostPause()
}

// hasOnly reports whether such an answer comes on a session.
func (d *download) hasOnly(c *connection, s *session) bool {
	return slices.ContainsFunc(c.on(s), d.isOnly) || d.awaitsWhole(s)
}

// whole is the connection's request for the whole file, if it goes on.
func (c *connection) whole() *request {
	for _, r := range c.active {
		if r.isWhole && r.goesOn() {
			return r
		}
	}
	return nil
}

// issue sends a request, or takes over the request of an opening.
func (d *download) issue(c *connection, next order, opened *opening, now time.Duration) {
	d.requests++
	s := c.session
	if opened != nil {
		s = opened.on
	}
	r := &request{Range: next.Range, id: d.requests, limit: next.End(), session: s, issued: now, alone: len(c.active) == 0,
		heard: s.Received(), before: c.expected + max(0, s.stale-s.Unread())}
	r.proof = new(transport.Proof)
	if opened != nil {
		r.proof = opened.proof
	}
	if len(c.active) == 0 {
		c.begun(c.delay(), now)
	}
	if len(c.on(s)) == 0 {
		s.heardAt = now
	}
	c.sends(&c.link.commonLink, r)
	if of := next.of; of != nil {
		of.duplicate, r.duplicate, r.isDuplicate = r, of, true
		of.hedged, r.hedged = next.isHedge, next.isHedge
	}
	d.await(c)
	c.link.Meter.Start(now)
	if opened != nil {
		if r.isWhole = opened.isWhole; r.isWhole {
			r.Length, r.more = d.part.End()-r.Offset, make(chan struct{}, 1)
		}
		r.issued = opened.sent
	}
	d.recordRequest(&c.link.commonLink, r, next.from, now, now)
	d.do(&receiving{caller: d.caller(), c: c, r: r, opened: opened, target: d.target(c), resource: d.resource})
}

// drop gives a request up, and returns the range that it has not brought.
func (d *download) drop(c *connection, r *request, now time.Duration) ranges.Range {
	left := c.givesUp(r)
	d.do(cancelRequest{r})
	d.endRequest(c, r, now)
	return left
}

// release makes a request's bytes free, unless its duplicate brings them.
func (d *download) release(r *request, left ranges.Range) {
	if r.detach() != nil || d.payload == nil {
		return
	}
	d.payload.Release(left)
}

func (d *download) endRequest(c *connection, r *request, now time.Duration) {
	othersWait := c.ends(r)
	c.link.isSpent = false
	if tail := c.tail(r, now); tail > 0 {
		r.session.stale, r.session.lateAt = r.session.Unread()+tail, now
	}
	if !othersWait {
		return
	}
	c.pace.End(now)
	if !c.link.isBusy() {
		c.link.Together.End(now)
	}
	if len(c.active) > 0 {
		delay := c.delay()
		if c.link.shortQueue && !c.link.HasSeveral() {
			delay = c.idle() // The first byte was behind the last bytes of this request.
		}
		c.begun(max(0, c.active[0].issued+delay-now), now)
	}
}

// await tells the socket how many bytes must arrive until the connection's next decision (the
// part Options.Overlap of its newest request) and until all its requests have ended.
func (d *download) await(c *connection) {
	if c.session == nil {
		return
	}
	s := c.session
	s.decision, s.end, s.owes = c.decision(d.Overlap, c.pipe(d.now)), c.expected, s.active > 0
	d.do(tellSocket{s})
}

// due reports whether the connection should send its next request, after bytes of r arrived: enough
// of its newest request has arrived, or too few bytes are in flight, or it has no newest request.
func (d *download) due(c *connection, r *request, now time.Duration) bool {
	if c.newest == nil {
		return r.complete()
	}
	overlapped := r == c.newest && float64(r.received) >= d.Overlap*float64(r.wanted())
	return overlapped || c.expected < c.pipe(now)
}
