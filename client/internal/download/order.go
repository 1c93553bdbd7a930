package download

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transport"
)

// request issues the link's next request, if there is one for it.
func (f *fetcher) request(c *connection) {
	if !c.isFirst() && !f.d.balance.CanPay(0, f.d.watchdog.open()) {
		return // A server that wastes so much is asked for little at a time.
	}
	now := time.Since(f.d.start)
	assigned, from, ok := f.d.policy.next(c, now)
	if !ok {
		return
	}
	if f.d.requests > 0 && !f.d.resource.HasValidator() && !f.d.Verified {
		f.d.fail(c, errors.New("the server gives neither a strong ETag nor Last-Modified, so that nothing proves that several ranges are of one file: give its checksum, or use the algorithm single"))
		return
	}
	f.issue(c, assigned, from, nil, now)
}

// issue sends a request, or goes on with the one that opened is about. from is
// the link that the range was taken from, if any.
func (f *fetcher) issue(c *connection, assigned ranges.Range, from string, opened *opening, now time.Duration) {
	f.d.requests++
	s := c.session
	r := &request{Range: assigned, id: f.d.requests, limit: assigned.End(), session: s, issued: now, alone: len(c.active) == 0,
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
	c.expected += assigned.Length
	f.await(c)
	c.link.Meter.Start(now)
	f.d.record(now, &rundir.Request{
		Link:   c.link.Name,
		ID:     r.id,
		Offset: int64(r.Offset),
		Length: int64(r.Length),
		Rate:   float64(c.link.Meter.Rate(now)),
		From:   from,
	})
	if opened != nil {
		r.isWhole = opened.isWhole
		r.issued = opened.sent
		r.cancel = func() { cancel(); opened.cancel() }
	}
	f.d.fetches.Add(1)
	f.d.wg.Go(func() { f.fetch(ctx, c, r, opened) })
}

// drop gives a request up, and returns what it has not delivered.
func (f *fetcher) drop(c *connection, r *request, now time.Duration) ranges.Range {
	left := ranges.Range{Offset: r.next(), Length: r.left()}
	f.shrink(c, r, left.Length)
	r.dropped = true
	r.cancel()
	f.ended(c, r, now)
	return left
}

// failedOver records that a link lost work; to is nil if it is not known yet
// who does it.
func (f *fetcher) failedOver(c, to *connection, bytes quantity.Bytes, reason string, now time.Duration) {
	c.link.failovers++
	event := &rundir.Failover{Link: c.link.Name, Bytes: int64(bytes), Reason: reason}
	if to != nil {
		event.To = to.link.Name
	}
	f.d.record(now, event)
}

// release makes bytes free that were assigned to a request, unless its duplicate
// brings them. If the URL may work once, an answer brings them that goes on with them.
func (f *fetcher) release(r *request, left ranges.Range) {
	if r.detach() != nil || f.d.payload == nil {
		return
	}
	f.d.payload.Release(left)
	if !f.d.Once {
		return
	}
	for _, c := range f.d.connections {
		for _, other := range c.active {
			if other.left() > 0 {
				next := ranges.Range{Offset: other.limit, Length: other.End() - other.limit}
				f.shrink(c, other, -f.d.payload.TakeBeginning(next))
				f.await(c)
			}
		}
	}
}

// takeBack has the answer to the request for the whole file go on where another request has no answer yet: the URL
// may work once.
func (f *fetcher) takeBack(r *request) {
	for _, c := range f.d.connections {
		for _, other := range c.active {
			if other.Offset == r.limit && other.received == 0 {
				f.release(other, f.drop(c, other, time.Since(f.d.start)))
				return
			}
		}
	}
}

// shrink takes the last bytes off what is wanted of a request.
func (f *fetcher) shrink(c *connection, r *request, bytes quantity.Bytes) {
	r.limit -= bytes
	c.expected -= bytes
}

// ended takes a request off those in flight.
func (f *fetcher) ended(c *connection, r *request, now time.Duration) {
	c.active = slices.DeleteFunc(c.active, func(other *request) bool { return other == r })
	for _, l := range f.d.links {
		l.isSpent = l.isSpent && !r.isWhole && l != c.link
	}
	if tail := r.tail(); tail > 0 {
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
	// What is in flight still waits for the server.
	c.pace.End(now)
	if all := c.link.Together; all != nil && !c.link.isBusy() {
		all.End(now)
	}
	if len(c.active) > 0 {
		delay := c.delay()
		if c.link.shortQueue && !c.link.HasSeveral() {
			delay = c.idle() // The last bytes were in its way, which the link brought.
		}
		c.begun(max(0, c.active[0].issued+delay-now), now)
	}
}

// await tells the socket how many bytes must arrive until the link's next
// decision, which takes the part overlap of its newest request, and until all
// its requests have ended.
func (f *fetcher) await(c *connection) {
	if c.session == nil {
		return
	}
	decision := c.expected
	if c.newest != nil {
		decision -= quantity.Bytes((1 - f.d.Overlap) * float64(c.newest.wanted()))
		decision = min(decision, c.expected-f.d.policy.ahead(c))
	}
	c.session.Socket.Await(decision, c.expected)
	c.session.Socket.Owes(c.session.active > 0)
}

// overlapped reports whether so much of the link's newest request arrived,
// which is r or another one, that the next may be issued.
func (f *fetcher) overlapped(c *connection, r *request) bool {
	return r == c.newest && float64(r.received) >= f.d.Overlap*float64(r.wanted())
}
