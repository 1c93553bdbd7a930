package download

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
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
func (f *fetcher) request(c *connection) {
	if !c.isFirst() && !f.d.balance.CanPay(0, f.d.watchdog.open()) {
		return // A server that sends so many unwanted bytes gets few requests at a time.
	}
	now := time.Since(f.d.start)
	next := f.d.next(c, now)
	if next.Length == 0 {
		return
	}
	if f.d.isUnproven() {
		f.d.fail(c.link.Name, errUnproven)
		return
	}
	if r := c.whole(); r != nil && f.mayExtend(c, r, next) {
		f.extend(c, r, next.Length)
		return
	}
	f.issue(c, next, nil, now)
}

// mayExtend reports whether the answer to the request for the whole file may go on with an order. Its bytes behind
// a duplicated rest would not count, and HTTP/2 requests a range at once.
func (f *fetcher) mayExtend(c *connection, r *request, next order) bool {
	isDuplicated := r.duplicate != nil || next.of != nil
	follows := r.session == c.session && r.limit == next.Offset
	return follows && !isDuplicated && (!f.d.repeats || !c.session.AsksAtOnce())
}

// extend makes the answer to the request for the whole file go on for so many bytes.
func (f *fetcher) extend(c *connection, r *request, bytes quantity.Bytes) {
	f.shrink(c, r, -bytes)
	c.newest = r
	f.await(c)
	notify(r.more)
}

// goOn makes the only answer of the URL bring the bytes that the server refuses to other requests.
func (f *fetcher) goOn() {
	for _, c := range f.d.connections {
		if r := c.whole(); r != nil && c.link.isSpent && f.isOnly(r) {
			f.extendFree(c, r)
		}
	}
}

// extendFree makes the answer to the request for the whole file go on with the free bytes behind it. It reports
// whether there are any.
func (f *fetcher) extendFree(c *connection, r *request) bool {
	if r.duplicate != nil {
		return false
	}
	next := ranges.Range{Offset: r.limit, Length: min(r.End(), f.d.limit()) - r.limit}
	free := f.d.payload.TakeBeginning(next)
	if free > 0 {
		f.extend(c, r, free)
	}
	return free > 0
}

// hold returns how many bytes of the answer to the request for the whole file the engine may read now. It keeps the
// last wanted byte back until another request shows whether the URL works more than once, or until the answer is to go
// on. It does not wait for long: a server may serve one request after the other.
func (f *fetcher) hold(ctx context.Context, c *connection, r *request) int {
	for {
		f.d.mu.Lock()
		if f.isProbed(r) && r.left() <= 1 && (c.newest == r || c.newest == nil) {
			f.request(c)
		}
		if f.isProbed(r) && r.left() <= 1 && f.d.isSerial {
			f.takeBack(c, r)
		}
		left, isProbed := r.left(), f.isProbed(r)
		r.isHeld = isProbed && left <= 1
		isHeld, patience := r.isHeld, max(transfer.LeastSilence, 2*c.rtt.Last)
		f.d.mu.Unlock()
		switch {
		case !isProbed:
			return math.MaxInt
		case !isHeld:
			return int(left) - 1
		}
		timer := time.NewTimer(patience)
		select {
		case <-ctx.Done():
		case <-r.more:
		case <-timer.C:
			f.d.mu.Lock()
			f.d.isSerial = f.takeBack(c, r) || f.d.isSerial
			f.d.mu.Unlock()
		}
		timer.Stop()
		if ctx.Err() != nil {
			return 1
		}
	}
}

// takeBack makes the answer to the request for the whole file bring the bytes of a request that has no answer, or the
// free bytes. It reports whether there are any.
func (f *fetcher) takeBack(c *connection, r *request) bool {
	if !f.isProbed(r) || r.duplicate != nil {
		return false
	}
	for _, other := range f.d.connections {
		for _, next := range other.active {
			if next.Offset == r.limit && next.received == 0 {
				left := f.drop(other, next, time.Since(f.d.start))
				f.release(next, left)
				f.extend(c, r, f.d.payload.TakeBeginning(left))
				return true
			}
		}
	}
	return f.extendFree(c, r) // Requests for these bytes may fail again and again.
}

// isProbed reports whether another request may still show that the answer to this one has to go on.
func (f *fetcher) isProbed(r *request) bool {
	return !f.d.repeats && !r.dropped && f.d.payload.Lacks(r.limit)
}

// mayBeOnly reports whether this request may have the URL's only answer: no other request was answered.
func (f *fetcher) mayBeOnly(r *request) bool { return r.isWhole && !f.d.repeats }

// isOnly reports whether such an answer goes on. The engine gives up one that is silent for long (mostPause).
func (f *fetcher) isOnly(r *request) bool {
	return f.mayBeOnly(r) && !r.dropped && r.left() > 0 && time.Since(f.d.start)-r.session.heardAt < f.d.mostPause()
}

// hasOnly reports whether such an answer comes on a session.
func (f *fetcher) hasOnly(c *connection, s *session) bool {
	return slices.ContainsFunc(c.on(s), f.isOnly) || f.d.asker.awaitsWhole(s)
}

// whole is the connection's request for the whole file, if it goes on.
func (c *connection) whole() *request {
	for _, r := range c.active {
		if r.isWhole && !r.dropped && r.left() > 0 {
			return r
		}
	}
	return nil
}

// issue sends a request, or takes over the request of an opening.
func (f *fetcher) issue(c *connection, next order, opened *opening, now time.Duration) {
	f.d.requests++
	s := c.session
	if opened != nil {
		s = opened.on
	}
	r := &request{Range: next.Range, id: f.d.requests, limit: next.End(), session: s, issued: now, alone: len(c.active) == 0,
		heard: s.Received(), before: c.expected + max(0, s.stale-s.Unread())}
	r.proof = new(transport.Proof)
	if opened != nil {
		r.proof = opened.proof
	}
	ctx, cancel := context.WithCancel(transport.WithProof(f.d.ctx, r.proof))
	r.cancel = cancel
	if len(c.active) == 0 {
		c.begun(c.delay(), now)
	}
	if len(c.on(s)) == 0 {
		s.heardAt = now
	}
	c.newest = r
	c.link.Requests++
	s.requests++
	s.active++
	c.active = append(c.active, r)
	c.expected += next.Length
	if of := next.of; of != nil {
		of.duplicate, r.duplicate, r.isDuplicate = r, of, true
		of.hedged, r.hedged = next.isHedge, next.isHedge
	}
	f.await(c)
	c.link.Meter.Start(now)
	if opened != nil {
		if r.isWhole = opened.isWhole; r.isWhole {
			r.Length, r.more = f.d.part.End()-r.Offset, make(chan struct{}, 1)
		}
		r.issued = opened.sent
		r.cancel = func() { cancel(); opened.cancel() }
	}
	f.d.record(now, &rundir.Request{
		Link:   c.link.Name,
		ID:     r.id,
		Offset: int64(r.Offset),
		Length: int64(r.Length),
		Rate:   float64(c.link.Meter.Rate(now)),
		From:   next.from,
	})
	f.d.fetches.Add(1)
	f.d.wg.Go(func() { f.fetch(ctx, c, r, opened) })
}

// drop gives a request up, and returns the range that it has not brought.
func (f *fetcher) drop(c *connection, r *request, now time.Duration) ranges.Range {
	left := ranges.Range{Offset: r.next(), Length: r.left()}
	f.shrink(c, r, left.Length)
	r.dropped = true
	r.cancel()
	f.ended(c, r, now)
	return left
}

// failedOver records that a connection lost work to another one; to is nil if no connection has
// the work yet.
func (f *fetcher) failedOver(c, to *connection, bytes quantity.Bytes, reason string, now time.Duration) {
	c.link.failovers++
	event := &rundir.Failover{Link: c.link.Name, Bytes: int64(bytes), Reason: reason}
	if to != nil {
		event.To = to.link.Name
	}
	f.d.record(now, event)
}

// release makes a request's bytes free, unless its duplicate brings them.
func (f *fetcher) release(r *request, left ranges.Range) {
	if r.detach() != nil || f.d.payload == nil {
		return
	}
	f.d.payload.Release(left)
}

// shrink makes a request want so many bytes less at its end.
func (f *fetcher) shrink(c *connection, r *request, bytes quantity.Bytes) {
	r.limit -= bytes
	c.expected -= bytes
}

// ended removes a request from those in flight.
func (f *fetcher) ended(c *connection, r *request, now time.Duration) {
	c.active = slices.DeleteFunc(c.active, func(other *request) bool { return other == r })
	c.link.isSpent = false
	if tail := c.tail(r, now); tail > 0 {
		r.session.stale, r.session.lateAt = r.session.Unread()+tail, now
	}
	if c.newest == r && r.dropped {
		c.newest = nil
	}
	for _, other := range c.active {
		if other.received > 0 {
			return
		}
	}
	// The other requests in flight still wait for the server.
	c.pace.End(now)
	if all := c.link.Together; all != nil && !c.link.isBusy() {
		all.End(now)
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
func (f *fetcher) await(c *connection) {
	if c.session == nil {
		return
	}
	decision := c.expected
	if c.newest != nil {
		decision -= quantity.Bytes((1 - f.d.Overlap) * float64(c.newest.wanted()))
		decision = min(decision, c.expected-c.pipe(time.Since(f.d.start)))
	}
	c.session.Socket.Await(decision, c.expected)
	c.session.Socket.Owes(c.session.active > 0)
}

// due reports whether the connection should send its next request, after bytes of r arrived: enough
// of its newest request has arrived, or too few bytes are in flight, or it has no newest request.
func (f *fetcher) due(c *connection, r *request, now time.Duration) bool {
	if c.newest == nil {
		return r.complete()
	}
	overlapped := r == c.newest && float64(r.received) >= f.d.Overlap*float64(r.wanted())
	return overlapped || c.expected < c.pipe(now)
}
