package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// issue sends a request, or takes over the one that was sent before the file was known.
func (p *published) issue(l *publishedLink, next order, sent publishedOpening) {
	p.requests++
	now := sent.sent
	r := &publishedRequest{
		Range: next.Range, id: p.requests, session: l.session, issued: now, proof: sent.proof, body: sent.body,
	}
	if r.proof == nil {
		r.proof = new(transport.Proof)
	}
	ctx, cancel := context.WithCancel(transport.WithProof(p.ctx, r.proof))
	r.cancel = cancel
	if len(l.active) == 0 {
		l.pace.Begin(now, l.delay())
	}
	l.newest = r
	l.Requests++
	r.session.requests++
	r.session.active++
	l.active = append(l.active, r)
	l.expected += r.Length
	p.await(l)
	l.Meter.Start(now)
	p.record(time.Since(p.start), &rundir.Request{
		Link: l.Name, ID: r.id, Offset: int64(r.Offset), Length: int64(r.Length), Rate: float64(l.Meter.Rate(now)), From: next.from,
	})
	target := p.target(l)
	p.wg.Go(func() { p.fetch(ctx, l, r, target) })
}

// target is what a link requests.
func (p *published) target(l *publishedLink) transport.Target {
	return p.task.target(transport.Target{URL: l.url, Bare: true})
}

// await tells the socket how many bytes must arrive until the link's next decision, and until all its
// requests have ended.
func (p *published) await(l *publishedLink) {
	if l.session == nil {
		return
	}
	decision := l.expected
	if l.newest != nil {
		decision -= quantity.Bytes((1 - p.Overlap) * float64(l.newest.Length))
		decision = min(decision, l.expected-p.ahead(l))
	}
	l.session.Socket.Await(decision, l.expected)
	l.session.Socket.Owes(l.session.active > 0)
}

// ahead is how many bytes a plan always wants in flight.
func (p *published) ahead(l *publishedLink) quantity.Bytes {
	if p.plan == nil || p.plan.pipeline == nil {
		return 0
	}
	rate := l.pace.Rate(time.Since(p.start))
	pipe := min(transfer.Ahead(rate, l.delay(), 0), schedule.MostOrder(l.pace.Total()))
	return p.plan.pipeline.Ahead(pipe)
}

// fetch receives the answer to a request.
func (p *published) fetch(ctx context.Context, l *publishedLink, r *publishedRequest, target transport.Target) {
	err := p.receive(ctx, l, r, target)
	r.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	r.session.active--
	defer p.settle(l, r.session)
	now := time.Since(p.start)
	if r.complete() {
		if errors.Is(err, transport.ErrTooLong) {
			p.fail(l.Name, err)
		}
		return
	}
	isCancelled := p.ctx.Err() != nil || r.dropped && !errors.As(err, new(sinkError))
	if !r.dropped {
		p.payload.Release(p.drop(l, r, now))
	}
	end := &rundir.End{Link: l.Name, ID: r.id, Bytes: int64(r.received), Wasted: int64(r.wasted), Outcome: rundir.Cancelled}
	if !isCancelled {
		err = fmt.Errorf("bytes %d-%d: %w", int64(r.Offset), int64(r.End()-1), err)
		end.Outcome, end.Error = rundir.Failed, err.Error()
	}
	l.Wasted += r.wasted
	p.record(now, end)
	p.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
	p.completeIfAllArrived(now)
	if !isCancelled {
		p.trouble(l, r.session, err)
	}
}

// receive copies the body of an answer to the sink. Bytes count as arrived when they are
// read; the last ones when they are written.
func (p *published) receive(ctx context.Context, l *publishedLink, r *publishedRequest, target transport.Target) error {
	body := r.body
	if body == nil {
		var err error
		if body, err = r.session.Get(ctx, target, p.resource, r.Range); err != nil {
			return err
		}
	}
	defer body.Close()
	unit := writeSize
	if p.window != nil {
		unit = 1
	}
	memory := block.Get()
	defer block.Put(memory)
	filled, offset := 0, r.Offset
	for {
		n, readErr := body.Read(memory[filled:])
		wanted, goesOn := p.countRead(r, n)
		filled += wanted
		if filled > 0 && (filled >= unit || !goesOn || readErr != nil) {
			if _, err := p.sink.WriteAt(memory[:filled], int64(offset)); err != nil {
				p.unwritten(r, filled)
				return sinkError{err}
			}
			offset += quantity.Bytes(filled)
			filled = 0
		}
		if wanted > 0 {
			p.progress(l, r, quantity.Bytes(wanted))
		}
		switch {
		case wanted < n:
			return nil
		case readErr == io.EOF && goesOn:
			return io.ErrUnexpectedEOF
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			return readErr
		}
	}
}

// countRead counts bytes that were read. None is wanted of a request that was given up meanwhile.
// goesOn says that more are wanted.
func (p *published) countRead(r *publishedRequest, n int) (wanted int, goesOn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.dropped {
		r.wasted += quantity.Bytes(n)
		return 0, false
	}
	r.received += quantity.Bytes(n)
	return n, r.goesOn()
}

// unwritten subtracts bytes that were counted and could not be written.
func (p *published) unwritten(r *publishedRequest, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.received -= quantity.Bytes(bytes)
}

// progress counts bytes that arrived, and sends the link's next request when enough of its newest
// one has arrived.
func (p *published) progress(l *publishedLink, r *publishedRequest, bytes quantity.Bytes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.start)
	if r.received == bytes {
		r.first = now
		p.record(now, &rundir.FirstByte{Link: l.Name, ID: r.id})
		l.answered(now - r.issued)
	}
	fresh := p.balance.Arrived(ranges.Range{Offset: r.next() - bytes, Length: bytes}, r.first, now)
	l.Last, l.hops, p.ranged = now, 0, true
	l.Meter.Add(now, bytes)
	l.pace.Add(now, bytes)
	r.proof.Fresh(fresh, r.received == r.Length && r.Length >= p.part.Length)
	if r.dropped {
		return
	}
	l.expected -= bytes
	if r.complete() {
		p.over(l, r, now)
		l.Wasted += r.wasted
		p.record(now, &rundir.End{Link: l.Name, ID: r.id, Bytes: int64(r.received), Wasted: int64(r.wasted), Outcome: rundir.Complete})
		p.payload.Arrived(r.Range)
		p.completeIfAllArrived(now)
	}
	if p.due(l, r, now) {
		l.newest = nil
		p.request(l)
	}
	p.await(l)
}

// due reports whether the link should send its next request, after bytes of r arrived: at the overlap
// (thesis 4.2.2), or when the plan wants it.
func (p *published) due(l *publishedLink, r *publishedRequest, now time.Duration) bool {
	if p.plan != nil {
		p.plan.work[l.index].follow(l, r, now)
		if p.plan.pipeline != nil {
			return l.newest == nil && r.complete() || r == l.newest && r.left() <= p.ahead(l)
		}
	}
	return r == l.newest && float64(r.received) >= p.Overlap*float64(r.Length)
}

// over removes a request from those in flight.
func (p *published) over(l *publishedLink, r *publishedRequest, now time.Duration) {
	l.active = slices.DeleteFunc(l.active, func(other *publishedRequest) bool { return other == r })
	if l.newest == r && r.dropped {
		l.newest = nil
	}
	if slices.ContainsFunc(l.active, func(other *publishedRequest) bool { return other.received > 0 }) {
		return
	}
	// The other requests in flight still wait for the server.
	l.pace.End(now)
	if len(l.active) > 0 {
		l.pace.Begin(now, max(0, l.active[0].issued+l.delay()-now))
	}
}

// drop gives a request up, and returns the range that it has not brought.
func (p *published) drop(l *publishedLink, r *publishedRequest, now time.Duration) ranges.Range {
	left := ranges.Range{Offset: r.next(), Length: r.left()}
	r.dropped = true
	l.expected -= left.Length
	r.cancel()
	p.over(l, r, now)
	return left
}

// failedOver records that a link lost work to another one; to is nil if none has it yet.
func (p *published) failedOver(l, to *publishedLink, bytes quantity.Bytes, now time.Duration) {
	l.failovers++
	event := &rundir.Failover{Link: l.Name, Bytes: int64(bytes), Reason: slow}
	if to != nil {
		event.To = to.Name
	}
	p.record(now, event)
}

// isAllAssigned reports whether requests are in flight for all missing bytes.
func (p *published) isAllAssigned() bool {
	return p.payload != nil && p.payload.Free(p.part.End()) == 0
}
