package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transport"
)

// sinkError is a failure of the sink, which no link can repair.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// usualRedirects is how many redirects in a row the client follows by default. NoRedirects is
// the value of Options.Redirects for none.
const (
	usualRedirects = 10
	NoRedirects    = -1
)

// fetcher sends requests for ranges and receives the answers.
type fetcher struct{ d *download }

// fetch receives the answer to one request.
func (f *fetcher) fetch(ctx context.Context, c *connection, r *request, opened *opening) {
	r.written = sync.OnceFunc(f.d.fetches.Done)
	defer r.written()
	err := f.receive(ctx, c, r, opened)
	r.cancel()
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	s := r.session
	s.active--
	defer f.d.closer.settle(c, s)
	now := time.Since(f.d.start)
	if r.complete() {
		if errors.Is(err, transport.ErrTooLong) {
			f.d.fail(c.link.Name, err)
		}
		return
	}
	cancelled := f.d.ctx.Err() != nil || r.dropped && !errors.As(err, new(sinkError))
	if !r.dropped {
		left := f.drop(c, r, now)
		f.release(r, left)
		if !cancelled {
			f.failedOver(c, nil, left.Length, lost, now)
		}
	}
	c.link.counted(r)
	end := &rundir.End{Link: c.link.Name, ID: r.id, Bytes: int64(r.received), Wasted: int64(r.wasted), Outcome: rundir.Cancelled}
	if !cancelled {
		err = fmt.Errorf("bytes %d-%d: %w", int64(r.Offset), int64(r.End()-1), err)
		end.Outcome, end.Error = rundir.Failed, err.Error()
	}
	c.link.Wasted += r.wasted
	f.d.record(now, end)
	if f.d.payload != nil {
		f.d.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
		f.d.completeIfAllArrived(now)
	} else {
		f.d.race.keep(ranges.Range{Offset: r.Offset, Length: r.received})
	}
	if !cancelled {
		f.trouble(c, s, err)
	}
	f.d.assign()
}

// trouble decides what follows from the failure of a request on a session.
func (f *fetcher) trouble(c *connection, s *session, err error) {
	redirect := new(transport.RedirectError)
	if !errors.As(err, &redirect) {
		f.d.balance.Failed()
	}
	f.d.watchdog.pay()
	defer f.d.watchdog.turn(err)
	switch {
	case f.d.ctx.Err() != nil:
	case errors.As(err, new(sinkError)):
		f.d.cancel(err)
	case f.d.refusals.isUsedUp(c, err):
		f.d.refusals.spend(c, err)
	case errors.As(err, &redirect) && !c.isFirst():
		f.d.closer.remove(c, time.Since(f.d.start))
	case errors.As(err, &redirect):
		for _, other := range c.link.connections {
			if other != c {
				f.d.closer.remove(other, time.Since(f.d.start))
			}
		}
		f.redirect(c, s, redirect)
	case errors.Is(err, transport.ErrTooLong):
		f.d.fail(c.link.Name, err)
	default:
		f.d.refusals.failed(c, s, err)
	}
}

// redirect lets the connection go on at the URL to which the server redirects it.
func (f *fetcher) redirect(c *connection, s *session, to *transport.RedirectError) {
	if c.hops++; c.hops > f.d.maxHops() {
		f.d.refusals.exclude(c, f.d.errTooManyHops(to))
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
	if c.url.Host != s.authority || c.url.Scheme != f.d.URL.Scheme {
		f.d.closer.lose(c, s)
		return
	}
	f.d.connector.proceed(c)
}

// receive copies the body of an answer to the sink. Bytes count as arrived when they are
// read; the last ones when they are written.
func (f *fetcher) receive(ctx context.Context, c *connection, r *request, opened *opening) error {
	body, err := f.body(ctx, c, r, opened)
	if err != nil {
		return err
	}
	defer body.Close()
	unit := writeSize
	if f.d.window != nil {
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
			// With HTTP/2 this waits until bytes are there. So only few of many requests in
			// flight need memory at a time.
			_, _ = body.Read(nil)
			memory = block.Get()
		}
		room := memory[filled:]
		if r.isWhole {
			room = room[:min(len(room), f.hold(ctx, c, r))]
		}
		n, readErr := body.Read(room)
		kept, last := f.countRead(c, r, n)
		filled += kept
		if filled > 0 && (filled >= unit || last || readErr != nil) {
			if _, err := f.d.sink.WriteAt(memory[:filled], int64(offset)); err != nil {
				return f.unwritten(r, filled, err)
			}
			offset += quantity.Bytes(filled)
			filled = 0
		}
		if filled == 0 {
			block.Put(memory)
			memory = nil
		}
		if kept > 0 {
			f.progress(c, r, quantity.Bytes(kept))
		}
		if last {
			r.written() // A server may send the end of the stream late, or never.
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

// body returns the body of the answer.
func (f *fetcher) body(ctx context.Context, c *connection, r *request, opened *opening) (io.ReadCloser, error) {
	f.d.mu.Lock()
	target, resource := f.d.target(c), f.d.resource
	f.d.mu.Unlock()
	if opened != nil {
		return opened.result(ctx, resource)
	}
	return r.session.Get(ctx, target, resource, r.Range)
}

// countRead decides how many of n bytes that arrived are wanted, and whether the last wanted
// one is among them.
func (f *fetcher) countRead(c *connection, r *request, n int) (kept int, last bool) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	for r.isWhole && r.left() <= quantity.Bytes(n) && f.isProbed(r) {
		if !f.takeBack(c, r) { // Another connection took the rest during the read.
			break
		}
	}
	kept = int(min(quantity.Bytes(n), r.left()))
	r.received += quantity.Bytes(kept)
	r.wasted += quantity.Bytes(n - kept)
	return kept, r.left() == 0
}

// unwritten subtracts bytes that were counted and could not be written.
func (f *fetcher) unwritten(r *request, bytes int, err error) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	r.received -= quantity.Bytes(bytes)
	return sinkError{err}
}

// progress counts bytes that arrived, and sends the connection's next request when enough of
// its newest one has arrived.
func (f *fetcher) progress(c *connection, r *request, bytes quantity.Bytes) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	now := time.Since(f.d.start)
	f.arrived(c, r, bytes, now)
	if r.dropped {
		return
	}
	c.expected -= bytes
	if r.hedged {
		f.d.hedger.endHedge(r, now)
	}
	if r.complete() {
		f.ended(c, r, now)
		c.link.Wasted += r.wasted
		f.d.record(now, &rundir.End{Link: c.link.Name, ID: r.id, Bytes: int64(r.received), Wasted: int64(r.wasted), Outcome: rundir.Complete})
		f.d.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
		f.d.hedger.endOther(r, now)
		f.hurry()
		f.d.completeIfAllArrived(now)
	}
	if f.due(c, r, now) {
		c.newest = nil
		f.request(c)
	}
	f.await(c)
}

// arrived counts bytes of a body. Only new bytes are progress: if a server cuts each whole
// answer at the same place, the count of failures goes on.
func (f *fetcher) arrived(c *connection, r *request, bytes quantity.Bytes, now time.Duration) {
	if r.received == bytes {
		r.first = now
		f.worksAgain(c, r)
		f.d.record(now, &rundir.FirstByte{Link: c.link.Name, ID: r.id})
		c.pathState.answered(now - r.issued)
		f.answered(c, r.session, r.issued, now)
		if r.alone {
			c.idleDelay = now - r.issued
			if c.leastDelay == 0 || c.idleDelay < c.leastDelay {
				c.leastDelay = c.idleDelay
			}
		}
	}
	offset := r.next() - bytes
	fresh := f.d.balance.Arrived(ranges.Range{Offset: offset, Length: bytes}, r.first, now)
	c.link.Last = now
	c.link.Meter.Add(now, bytes)
	if added := r.session.hole.deliver(bytes); added > 0 {
		c.delivered(added, now)
	}
	if r.session.wait.since > 0 {
		r.session.heardAt, r.session.wait = now, wait{}
	}
	f.d.ranged = true
	if r.session == c.session {
		c.heard()
	}
	if fresh > 0 {
		r.session.delivered, f.d.unranged = true, 0
		if r.session == c.session {
			c.failures = 0
		}
	}
	r.proof.Fresh(fresh, r.received == r.Length && r.Length >= f.d.part.Length)
	if fresh == 0 {
		f.d.watchdog.pay()
	}
}

// worksAgain notes that a second request was answered: the URL works more than once.
func (f *fetcher) worksAgain(c *connection, r *request) {
	if r.isWhole || f.d.repeats || c.url.String() != f.d.origin.url.String() {
		return
	}
	f.d.repeats = true
	f.d.refusals.restore()
	f.hurry()
}

// hurry makes the answer to the request for the whole file decide whether it goes on, if the
// engine holds its last byte.
func (f *fetcher) hurry() {
	for _, c := range f.d.connections {
		if r := c.whole(); r != nil {
			notify(r.more)
		}
	}
}

// answered notes the time from a request to its answer. A server is slow to answer if the link
// brought nothing else meanwhile; else the link itself was busy.
func (f *fetcher) answered(c *connection, s *session, sent, now time.Duration) {
	brings := c.link.Last > sent && c.link.Last < now
	c.link.isSlowToAnswer = now-sent >= firstSilence && !brings && (c.link.isSlowToAnswer || s.wait.since > 0)
}
