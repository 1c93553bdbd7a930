package download

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/regularly"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
)

// published is the engine of published algorithms (thesis 4.2.2). It uses HTTP/2 alone. Each link has
// one connection, and the scheduler alone decides which link brings which bytes. The first failure
// of a link that is still needed ends the download, as does silence (Options.GiveUp).
type published struct {
	task
	links []*publishedLink
	// plan chooses the links that are used, if it is set.
	plan *division
	// known is memory that decisions use again.
	known []schedule.Link
}

// publishedLink is a link with its connection.
type publishedLink struct {
	commonLink
	commonConnection
	planWork
	// asking is the session on which it asks for the size, if it does.
	asking *session
	// need receives when the link may need a session.
	need chan struct{}
}

func newPublished(o Options) *published {
	p := new(published)
	p.task.begin(o)
	p.TLS = o.TLS.Clone()
	if p.TLS == nil {
		p.TLS = new(tls.Config)
	}
	p.TLS.NextProtos = []string{"h2"}
	for x, of := range o.Links {
		p.links = append(p.links, &publishedLink{
			commonLink: newCommonLink(x, of.Within(o.sessions()), o.Window), commonConnection: newConnection(o.URL), need: make(chan struct{}, 1),
		})
	}
	if planner, ok := o.Scheduler.(schedule.Planner); ok {
		p.plan = newDivision(p, planner.Plan())
	}
	return p
}

func (p *published) summarize(s *rundir.Summary) {
	for _, l := range p.links {
		s.Links[l.Name] = l.summary(l.Meter.Total(), l.rtt)
	}
}

func (p *published) transfer(ctx context.Context) error {
	for _, l := range p.links {
		p.wg.Go(func() { p.keep(ctx, l) })
	}
	if p.window != nil {
		p.wg.Go(func() { p.follow(func() { p.locked(func(time.Duration) { p.assign() }) }) })
	}
	p.every(time.Second, p.giveUp)
	if p.plan != nil {
		p.every(p.plan.plan.Every(), p.plan.look)
	}
	if len(p.Recorders) > 0 {
		p.every(rundir.SampleInterval, p.sample)
	}
	<-ctx.Done()
	p.wg.Wait()
	err := p.ended()
	for _, l := range p.links {
		if s := l.session; s != nil {
			l.measure()
			if isKept := err == nil && p.plan == nil && p.Pool != nil && s.Usable(); isKept {
				p.count(l, s)
				p.Pool.put(l.Name, l.url, s.Conn)
			} else {
				p.close(l, s)
			}
		}
	}
	return err
}

func (p *published) assign() {
	if p.payload == nil || p.ctx.Err() != nil {
		return
	}
	for _, l := range p.links {
		if l.session != nil && !l.session.draining {
			p.request(l)
		}
	}
}

func (p *published) request(l *publishedLink) {
	if l.newest != nil {
		return
	}
	now := time.Since(p.start)
	var next order
	if p.plan != nil {
		next = p.plan.next(l, now)
	} else {
		next = p.take(p.nextSize(l, now))
	}
	switch {
	case next.Length == 0:
	case p.isUnproven():
		p.fail(l.Name, errUnproven)
	default:
		p.issue(l, next, publishedOpening{sent: now})
	}
}

func (p *published) nextSize(l *publishedLink, now time.Duration) quantity.Bytes {
	known := p.knownPayload(p.known)
	for _, other := range p.links {
		other.measure()
		known.Links = append(known.Links, other.known(&other.commonLink, now))
	}
	p.known = known.Links
	return p.Scheduler.Next(l.index, known)
}

// giveUp ends the download if no new bytes arrived for too long, or too few.
func (p *published) giveUp(now time.Duration) {
	isWaiting := p.payload == nil || p.window == nil || p.payload.Free(p.limit()) > 0
	var received quantity.Bytes
	for _, l := range p.links {
		isWaiting = isWaiting || len(l.active) > 0
		received += l.Meter.Total()
	}
	if err := p.slowness(isWaiting, received, now); err != nil {
		p.cancel(err)
	}
}

func (p *published) sample(now time.Duration) {
	for _, l := range p.links {
		if l.session != nil {
			p.recordSample(&l.commonLink, &l.commonConnection, len(l.active), now)
		}
	}
}

// every calls do at regular times until the transfer ends, locked.
func (p *published) every(period time.Duration, do func(now time.Duration)) {
	p.wg.Go(func() { regularly.Do(p.ctx, period, func() { p.locked(do) }) })
}

func (p *published) locked(do func(now time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(time.Since(p.start))
}
