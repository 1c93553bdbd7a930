package download

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transport"
)

// keep connects a link, and connects it again when it needs a session.
func (p *published) keep(ctx context.Context, l *publishedLink) {
	for ctx.Err() == nil {
		p.mu.Lock()
		needed := l.needsSession()
		p.mu.Unlock()
		if !needed {
			select {
			case <-ctx.Done():
			case <-l.need:
			}
			continue
		}
		err := p.connect(ctx, l)
		pause := link.Wait(err)
		p.mu.Lock()
		isNeedless := p.payload != nil && p.payload.Free(p.part.End()) == 0 && len(l.reserved) == 0
		switch isMissed := err != nil && pause == 0 && ctx.Err() == nil && l.needsSession(); {
		case isMissed && isNeedless:
			p.Log.Warn("link is not needed any more", "link", l.Name, "error", err)
			p.mu.Unlock()
			return
		case isMissed:
			p.fail(l.Name, err)
		}
		p.mu.Unlock()
		if pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

func (l *publishedLink) needsSession() bool {
	return !l.spared && (l.session == nil || l.session.draining)
}

func (p *published) connect(ctx context.Context, l *publishedLink) error {
	p.mu.Lock()
	u := l.url
	if l.session == nil {
		if conn := p.Pool.take(l.Name, u); conn != nil {
			defer p.mu.Unlock()
			p.connected(l, u, conn, &rundir.Connected{Protocol: conn.Protocol})
			return nil
		}
	}
	p.mu.Unlock()
	address := transport.Address(u)
	started := time.Since(p.start)
	dial := func(ctx context.Context) (link.Socket, error) { return l.Dial(ctx, address) }
	socket, err := dial(ctx)
	if err != nil {
		return attemptError(ctx, err)
	}
	connected := time.Since(p.start)
	conn, err := transport.Open(ctx, socket, dial, p.TLS, p.Hellos, u)
	if err != nil {
		return attemptError(ctx, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil || !l.needsSession() || l.url != u {
		conn.Close()
		return nil
	}
	tcp, tls := (connected - started).Nanoseconds(), (time.Since(p.start) - connected).Nanoseconds()
	p.connected(l, u, conn, &rundir.Connected{TCP: tcp, TLS: tls, Protocol: conn.Protocol})
	return nil
}

// connected gives the link its session, and its next task.
func (p *published) connected(l *publishedLink, u *url.URL, conn *transport.Conn, event *rundir.Connected) {
	now := time.Since(p.start)
	l.newest = nil
	if l.Requests > 0 {
		l.Meter.Restart(now)
		l.pace = throughput.NewPace(schedule.PaceWindow)
	}
	l.session = newSession(conn, u)
	l.measure()
	p.recordConnected(&l.commonLink, &l.commonConnection, event, now)
	p.proceed(l)
}

// proceed makes a link ask for the size, unless that is known or another link asks, or for bytes.
func (p *published) proceed(l *publishedLink) {
	isAsking := func(one *publishedLink) bool { return one.asking != nil && one.asking == one.session }
	switch {
	case p.payload != nil:
		p.request(l)
	case l.asking == nil && !slices.ContainsFunc(p.links, isAsking):
		s, target := l.session, p.target(l)
		l.asking = s
		now := time.Since(p.start)
		first := publishedOpening{sent: now}
		if p.opens() {
			first.size = p.nextSize(l, now)
		}
		p.wg.Go(func() { p.ask(l, s, target, first) })
	}
}

// publishedOpening is a request for so many bytes of a file that is not known yet. Without bytes it asks for the size alone.
type publishedOpening struct {
	size quantity.Bytes
	sent time.Duration
	// proof and body are those of the answer.
	proof *transport.Proof
	body  io.ReadCloser
}

// opens reports whether the first request is for bytes, as the plan wants it. A call that resumes a
// download, or that has a part of the file, does not know which ones are missing.
func (p *published) opens() bool {
	return p.plan != nil && p.plan.opens && p.Resource == nil && p.Slice == nil && p.earlier == nil && p.window == nil
}

func (p *published) ask(l *publishedLink, s *session, target transport.Target, first publishedOpening) {
	var resource transport.Resource
	var err error
	switch {
	case p.Resource != nil:
		resource = *p.Resource
	case first.size > 0:
		first.proof = new(transport.Proof)
		ctx := transport.WithProof(p.ctx, first.proof)
		if resource, first.body, err = s.Begin(ctx, target, ranges.Range{Length: first.size}); isRefused(err) {
			resource, err = learn(p.ctx, s.Conn, target, false)
		}
	default:
		resource, err = learn(p.ctx, s.Conn, target, false)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.asking = nil
	if p.payload == nil && p.ctx.Err() == nil {
		if err == nil {
			err = p.accept(l, resource)
		}
		if err != nil {
			p.trouble(l, s, err)
		} else if first.body != nil && l.session == s && l.newest == nil {
			if next := p.take(first.size); next.Length > 0 {
				p.plan.seen[l.index].first = first.sent
				p.issue(l, next, first)
				first.body = nil
			}
		}
		p.assign()
	}
	if first.body != nil {
		first.body.Close()
	}
}

// accept begins the download of the resource.
func (p *published) accept(l *publishedLink, resource transport.Resource) error {
	switch {
	case resource.Size < 0:
		return errors.New("the server does not tell the size of the file (no Content-Length)")
	case resource.NoRanges:
		return errors.New("the server does not serve ranges (Accept-Ranges: none)")
	}
	if err := p.describe(resource); err != nil {
		return err
	}
	have, err := p.sink.Begin(p.resource, p.part)
	if err := p.sinkBegan(have, err, l.Name, false, time.Since(p.start)); err != nil {
		return err
	}
	p.payload = ranges.NewPayload(p.part, have...)
	p.completeIfAllArrived(time.Since(p.start))
	return nil
}

// trouble decides what follows from the failure of a request: a redirect is followed, and all else ends the download.
func (p *published) trouble(l *publishedLink, s *session, err error) {
	redirect := new(transport.RedirectError)
	switch {
	case p.ctx.Err() != nil:
	case errors.As(err, new(sinkError)):
		p.cancel(err)
	case !errors.As(err, &redirect):
		p.fail(l.Name, err)
	case l.hops >= p.maxHops():
		p.fail(l.Name, p.errTooManyHops(redirect))
	default:
		p.redirect(l, s, redirect)
	}
}

// redirect lets the link go on at the URL to which the server redirects it.
func (p *published) redirect(l *publishedLink, s *session, to *transport.RedirectError) {
	if l.hops++; s != l.session {
		return
	}
	if l.redirected(to, p.URL.Scheme) {
		p.proceed(l)
		return
	}
	l.newest = nil
	s.draining = true // It closes when its requests in flight have ended.
	p.settle(l, s)
	notify(l.need)
}

// settle closes a session that takes no new requests and has none left.
func (p *published) settle(l *publishedLink, s *session) {
	if s.draining && s.active == 0 {
		p.close(l, s)
	}
}

func (p *published) close(l *publishedLink, s *session) {
	if l.session == s {
		l.session = nil
	}
	s.draining = true
	s.Conn.Close()
	p.count(l, s)
}

// count counts the bytes that a session received and nothing read since the last call.
func (p *published) count(l *publishedLink, s *session) {
	p.balance.Closed(s.Bodies() - s.bodies)
	s.bodies = s.Bodies()
	p.recordWasted(&l.commonLink, s, time.Since(p.start))
}

// notify tells a goroutine that may wait for it.
func notify(c chan struct{}) { notifyWorker{c}.perform() }
