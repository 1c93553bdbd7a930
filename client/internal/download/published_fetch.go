package download

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

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
	r := &request{Range: next.Range, limit: next.End(), id: p.requests, session: l.session, issued: now, proof: sent.proof}
	if r.proof == nil {
		r.proof = new(transport.Proof)
	}
	ctx, cancel := context.WithCancel(transport.WithProof(p.ctx, r.proof))
	r.cancel = cancel
	if len(l.active) == 0 {
		l.pace.Begin(now, l.delay())
	}
	l.sends(&l.commonLink, r)
	p.await(l)
	l.Meter.Start(now)
	p.recordRequest(&l.commonLink, r, next.from, now, time.Since(p.start))
	target := p.target(l)
	p.wg.Go(func() { p.fetch(ctx, &publishedFetch{p, l, r}, target, sent.body) })
}

func (p *published) target(l *publishedLink) transport.Target {
	return p.task.target(transport.Target{URL: l.url, Bare: true})
}

// await tells the socket how many bytes must arrive until the link's next decision, and until all its
// requests have ended.
func (p *published) await(l *publishedLink) {
	if l.session == nil {
		return
	}
	l.session.Socket.Await(l.decision(p.Overlap, p.ahead(l)), l.expected)
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

// fetch receives the answer to a request. body is the answer if it came before the request was issued.
func (p *published) fetch(ctx context.Context, f *publishedFetch, target transport.Target, body io.ReadCloser) {
	l, r := f.l, f.r
	unwritten, err := f.receive(ctx, target, body)
	r.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	r.received -= unwritten
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
	err = p.recordEarlyEnd(&l.commonLink, r, isCancelled, err, now)
	p.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
	p.completeIfAllArrived(now)
	if !isCancelled {
		p.trouble(l, r.session, err)
	}
}

// publishedFetch receives the answer to a request of a link.
type publishedFetch struct {
	p *published
	l *publishedLink
	r *request
}

func (f *publishedFetch) receive(ctx context.Context, target transport.Target, body io.ReadCloser) (unwritten quantity.Bytes, err error) {
	if body == nil {
		if body, err = f.r.session.Get(ctx, target, f.p.resource, f.r.Range); err != nil {
			return 0, err
		}
	}
	defer body.Close()
	return f.p.copyBody(body, f.r, f)
}

func (f *publishedFetch) room() int { return math.MaxInt }
func (f *publishedFetch) hasAll()   {}

func (f *publishedFetch) read(bytes int) arrival {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	return f.r.read(bytes)
}

// progress counts bytes that arrived, and sends the link's next request when enough of its newest one has arrived.
func (f *publishedFetch) progress(kept int) {
	p, l, r, bytes := f.p, f.l, f.r, quantity.Bytes(kept)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.start)
	p.countArrived(&l.commonLink, &l.commonConnection, r, bytes, now)
	l.pace.Add(now, bytes)
	l.hops = 0
	if r.dropped {
		return
	}
	l.expected -= bytes
	if r.complete() {
		p.over(l, r, now)
		p.recordEnd(&l.commonLink, r, rundir.Complete, nil, now)
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
func (p *published) due(l *publishedLink, r *request, now time.Duration) bool {
	if p.plan != nil {
		l.follow(l, r, now)
		if p.plan.pipeline != nil {
			return l.newest == nil && r.complete() || r == l.newest && r.left() <= p.ahead(l)
		}
	}
	return r == l.newest && float64(r.received) >= p.Overlap*float64(r.Length)
}

func (p *published) over(l *publishedLink, r *request, now time.Duration) {
	if !l.ends(r) {
		return
	}
	// The other requests in flight still wait for the server.
	l.pace.End(now)
	if len(l.active) > 0 {
		l.pace.Begin(now, max(0, l.active[0].issued+l.delay()-now))
	}
}

// drop gives a request up, and returns the range that it has not brought.
func (p *published) drop(l *publishedLink, r *request, now time.Duration) ranges.Range {
	left := l.givesUp(r)
	r.cancel()
	p.over(l, r, now)
	return left
}
