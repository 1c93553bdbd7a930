package download

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transport"
)

// sinkError is a failure on this side, which no link can make up for.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// usualRedirects is how many redirects are followed in a row, and NoRedirects is
// Options.Redirects for none.
const (
	usualRedirects = 10
	NoRedirects    = -1
)

// maxHops is how many redirects are followed in a row.
func (d *download) maxHops() int { return max(0, cmp.Or(d.Redirects, usualRedirects)) }

// delaySamples is how many requests tell how soon a server answers.
const delaySamples = 4

// request issues the link's next request, if there is one for it.
func (d *download) request(c *connection) {
	now := time.Since(d.start)
	assigned, from, ok := d.policy.next(c, now)
	if !ok {
		return
	}
	if d.requests > 0 && !d.resource.HasValidator() && !d.Verified {
		d.fail(c, errors.New("the server gives neither a strong ETag nor Last-Modified, so that nothing proves that several ranges are of one file: give its checksum, or use the algorithm single"))
		return
	}
	d.issue(c, assigned, from, nil, now)
}

// issue sends a request, or goes on with the one that opened is about. from is
// the link that the range was taken from, if any.
func (d *download) issue(c *connection, assigned ranges.Range, from string, opened *opening, now time.Duration) {
	d.requests++
	s := c.session
	r := &request{Range: assigned, id: d.requests, limit: assigned.End(), session: s, issued: now, alone: len(c.active) == 0,
		heard: s.Received(), before: c.expected + max(0, s.stale-s.Unread())}
	ctx, cancel := context.WithCancel(d.ctx)
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
	d.await(c)
	c.link.Meter.Start(now)
	d.record(now, &rundir.Request{
		Link:   c.link.Name,
		ID:     r.id,
		Offset: int64(r.Offset),
		Length: int64(r.Length),
		Rate:   float64(c.link.Meter.Rate(now)),
		From:   from,
	})
	if opened != nil {
		r.issued = opened.sent
		r.cancel = func() { cancel(); opened.cancel() }
	}
	d.fetches.Add(1)
	d.wg.Go(func() { d.fetch(ctx, c, r, opened) })
}

// fetch receives one request to its end.
func (d *download) fetch(ctx context.Context, c *connection, r *request, opened *opening) {
	defer d.fetches.Done()
	err := d.receive(ctx, c, r, opened)
	r.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := r.session
	s.active--
	defer d.settle(c, s)
	now := time.Since(d.start)
	if r.complete() {
		if errors.Is(err, transport.ErrTooLong) {
			d.fail(c, err)
		}
		return
	}
	cancelled := d.ctx.Err() != nil || r.dropped && !errors.As(err, new(sinkError))
	if !r.dropped {
		left := d.drop(c, r, now)
		d.release(r, left)
		if !cancelled {
			d.policy.lost(c, left.Length, now)
		}
	}
	c.counted(r)
	end := &rundir.End{Link: c.link.Name, ID: r.id, Bytes: int64(r.received), Wasted: int64(r.wasted), Outcome: rundir.Cancelled}
	if !cancelled {
		err = fmt.Errorf("bytes %d-%d: %w", int64(r.Offset), int64(r.End()-1), err)
		end.Outcome, end.Error = rundir.Failed, err.Error()
	}
	c.link.Wasted += r.wasted
	d.record(now, end)
	if d.payload != nil {
		d.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
		d.completeIfAllArrived(now)
	} else {
		d.race.keep(ranges.Range{Offset: r.Offset, Length: r.received})
	}
	if !cancelled {
		d.trouble(c, s, err)
	}
	d.policy.freed()
}

// trouble decides what follows from the failure of a request on a session of
// a link.
func (d *download) trouble(c *connection, s *session, err error) {
	redirect := new(transport.RedirectError)
	switch {
	case d.ctx.Err() != nil:
	case errors.As(err, new(sinkError)):
		d.cancel(err)
	case errors.As(err, &redirect) && !c.isFirst():
		d.remove(c, time.Since(d.start))
	case errors.As(err, &redirect):
		for _, other := range c.link.connections {
			if other != c {
				d.remove(other, time.Since(d.start))
			}
		}
		d.redirect(c, s, redirect)
	case errors.Is(err, transport.ErrTooLong):
		d.fail(c, err)
	default:
		d.policy.failed(c, s, err)
	}
}

// redirect lets the link go on where the server sends it.
func (d *download) redirect(c *connection, s *session, to *transport.RedirectError) {
	if c.hops++; c.hops > d.maxHops() {
		d.policy.exclude(c, fmt.Errorf("the server redirects more than %d times, at last to %s", d.maxHops(), printable.Text(to.Location.String())))
		return
	}
	if s != c.session {
		return
	}
	// The request that was redirected did not happen.
	if s.requests > 0 {
		s.requests--
	}
	c.url = to.Location
	if c.url.Host != s.authority || c.url.Scheme != d.URL.Scheme {
		d.lose(c, s)
		return
	}
	d.proceed(c)
}

// drop gives a request up, and returns what it has not delivered.
func (d *download) drop(c *connection, r *request, now time.Duration) ranges.Range {
	left := ranges.Range{Offset: r.next(), Length: r.left()}
	d.shrink(c, r, left.Length)
	r.dropped = true
	r.cancel()
	d.ended(c, r, now)
	return left
}

// failedOver records that a link lost work; to is nil if it is not known yet
// who does it.
func (d *download) failedOver(c, to *connection, bytes quantity.Bytes, reason string, now time.Duration) {
	c.link.failovers++
	event := &rundir.Failover{Link: c.link.Name, Bytes: int64(bytes), Reason: reason}
	if to != nil {
		event.To = to.link.Name
	}
	d.record(now, event)
}

// release makes bytes free that were assigned to a request, unless its twin
// brings them.
func (d *download) release(r *request, left ranges.Range) {
	if r.part() != nil {
		return
	}
	if d.payload != nil {
		d.payload.Release(left)
	}
}

// shrink takes the last bytes off what is wanted of a request.
func (d *download) shrink(c *connection, r *request, bytes quantity.Bytes) {
	r.limit -= bytes
	c.expected -= bytes
}

// ended takes a request off those in flight.
func (d *download) ended(c *connection, r *request, now time.Duration) {
	c.active = slices.DeleteFunc(c.active, func(other *request) bool { return other == r })
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
		if c.link.little && !c.link.HasSeveral() {
			delay = c.idle() // The last bytes were in its way, which the link brought.
		}
		c.begun(max(0, c.active[0].issued+delay-now), now)
	}
}

// receive copies the body of a request to the sink. Each byte counts as
// arrived when it was read, and the last ones when they are written.
func (d *download) receive(ctx context.Context, c *connection, r *request, opened *opening) error {
	body, err := d.body(ctx, c, r, opened)
	if err != nil {
		return err
	}
	defer body.Close()
	unit := writeSize
	if d.window != nil {
		unit = 1
	}
	var memory *block.Block
	defer func() {
		if memory != nil {
			block.Put(memory)
		}
	}()
	filled, offset := 0, r.Offset
	for {
		if memory == nil {
			// With HTTP/2 this waits until there is something: of many requests
			// in flight few need memory at a time.
			_, _ = body.Read(nil)
			memory = block.Get()
		}
		n, readErr := body.Read(memory[filled:])
		kept, last := d.take(r, n)
		filled += kept
		if filled > 0 && (filled >= unit || last || readErr != nil) {
			if _, err := d.sink.WriteAt(memory[:filled], int64(offset)); err != nil {
				return d.unwritten(r, filled, err)
			}
			offset += quantity.Bytes(filled)
			filled = 0
		}
		if filled == 0 {
			block.Put(memory)
			memory = nil
		}
		if kept > 0 {
			d.progress(c, r, quantity.Bytes(kept))
		}
		switch {
		case readErr == io.EOF && !last:
			return io.ErrUnexpectedEOF
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			return readErr
		case n > kept || last && r.limit < r.End():
			return nil
		}
	}
}

// body is that of the answer to the request.
func (d *download) body(ctx context.Context, c *connection, r *request, opened *opening) (io.ReadCloser, error) {
	d.mu.Lock()
	target, resource := d.target(c), d.resource
	d.mu.Unlock()
	if opened != nil {
		return opened.result(ctx, resource)
	}
	return r.session.Get(ctx, target, resource, r.Range)
}

// take decides how many of n bytes that arrived are wanted, and whether they
// are the last.
func (d *download) take(r *request, n int) (kept int, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept = int(min(quantity.Bytes(n), r.left()))
	r.received += quantity.Bytes(kept)
	r.wasted += quantity.Bytes(n - kept)
	return kept, r.left() == 0
}

// unwritten takes bytes back that were counted and could not be written.
func (d *download) unwritten(r *request, bytes int, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.received -= quantity.Bytes(bytes)
	return sinkError{err}
}

// progress takes account of bytes that arrived, and issues the link's next
// request when enough of its newest has.
func (d *download) progress(c *connection, r *request, bytes quantity.Bytes) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Since(d.start)
	d.arrived(c, r, bytes, now)
	if r.dropped {
		return
	}
	c.expected -= bytes
	if r.hedged {
		d.endHedge(r, now)
	}
	if r.complete() {
		d.ended(c, r, now)
		c.link.Wasted += r.wasted
		d.record(now, &rundir.End{Link: c.link.Name, ID: r.id, Bytes: int64(r.received), Wasted: int64(r.wasted), Outcome: rundir.Complete})
		d.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
		d.ousted(r, now)
		d.completeIfAllArrived(now)
	}
	if d.policy.due(c, r, now) {
		c.newest = nil
		d.request(c)
	}
	d.await(c)
}

// overlapped reports whether so much of the link's newest request arrived,
// which is r or another one, that the next may be issued.
func (d *download) overlapped(c *connection, r *request) bool {
	return r == c.newest && float64(r.received) >= d.Overlap*float64(r.wanted())
}

// arrived counts bytes of a body.
func (d *download) arrived(c *connection, r *request, bytes quantity.Bytes, now time.Duration) {
	if r.received == bytes {
		r.first = now
		d.record(now, &rundir.FirstByte{Link: c.link.Name, ID: r.id})
		c.delays = append(c.delays[max(0, len(c.delays)-delaySamples+1):], now-r.issued)
		d.answered(c, r.session, r.issued, now)
		if r.alone {
			c.idleDelay = now - r.issued
			if c.leastDelay == 0 || c.idleDelay < c.leastDelay {
				c.leastDelay = c.idleDelay
			}
		}
	}
	c.link.Last, d.last, d.refusals = now, now, 0
	c.link.Meter.Add(now, bytes)
	if added := r.session.hole.deliver(bytes); added > 0 {
		c.delivered(added, now)
	}
	if r.session.wait.since > 0 {
		r.session.heardAt, r.session.wait = now, wait{}
	}
	r.session.delivered, d.ranged = true, true
	if r.session == c.session {
		c.recovered()
	}
}

// await tells the socket how many bytes must arrive until the link's next
// decision, which takes the part overlap of its newest request, and until all
// its requests have ended.
func (d *download) await(c *connection) {
	if c.session == nil {
		return
	}
	decision := c.expected
	if c.newest != nil {
		decision -= quantity.Bytes((1 - d.Overlap) * float64(c.newest.wanted()))
		decision = min(decision, c.expected-d.policy.ahead(c))
	}
	c.session.Socket.Await(decision, c.expected)
	c.session.Socket.Owes(c.session.active > 0)
}
