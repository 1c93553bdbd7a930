package download

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// opening is a request for a range of a resource that the client does not know yet. The answer of
// a server with ranges tells what HEAD would tell, a round trip earlier.
type opening struct {
	part   ranges.Range
	link   *connection
	on     *session
	sent   time.Duration
	cancel context.CancelFunc
	// isWhole says that the request is for the file from its first byte to its end.
	isWhole bool
	// answered is closed when the rest is known.
	answered chan struct{}
	resource transport.Resource
	body     io.ReadCloser
	err      error
	proof    *transport.Proof
}

// isNew reports whether all bytes are missing. A call that resumes a download does not request the
// first bytes before it knows which ones are missing.
func (a *asker) isNew() bool { return a.d.Slice == nil && a.d.earlier == nil }

// opens reports whether the first request is a GET for bytes, not a HEAD. Its answer brings bytes a round trip earlier.
func (a *asker) opens() bool {
	return a.isNew() && (a.d.Connections != nil || a.d.plan != nil && a.d.plan.opens)
}

// open sends an opening on a connection. The first connection that is ready asks for the whole file, since
// the URL may work only once. The others take their parts of it later. They send openings, too, if no answer comes soon:
// a server that serves one connection at a time may serve another one first.
func (a *asker) open(c *connection) {
	isAwaited, isLate := a.awaited()
	switch {
	case isLate:
		a.openFor(c, schedule.OpeningOrder)
	case !isAwaited:
		a.openFor(c, ranges.ToEnd)
	}
}

// awaited reports whether an opening may still get an answer, and whether such an answer is late.
func (a *asker) awaited() (isAwaited, isLate bool) {
	now := time.Since(a.d.start)
	for _, o := range a.openings {
		if !o.isAnswered() && o.link.session == o.on && o.link.alive() {
			isAwaited = true
			isLate = isLate || now-o.sent >= max(firstSilence, 2*o.link.rtt.Last)
		}
	}
	return isAwaited, isLate
}

// awaitsWhole reports whether an opening for the whole file may still get an answer on session s; with nil, on any.
func (a *asker) awaitsWhole(s *session) bool {
	return slices.ContainsFunc(a.openings, func(o *opening) bool {
		isLate := time.Since(a.d.start)-o.sent > a.d.mostPause()
		return o.isWhole && !o.isAnswered() && !isLate && slices.Contains(o.link.sessions(), o.on) && (s == nil || s == o.on)
	})
}

// openFor sends an opening for so many bytes.
func (a *asker) openFor(c *connection, bytes quantity.Bytes) {
	if len(a.openings) == 0 || bytes == ranges.ToEnd {
		a.opened = 0
	}
	proof := new(transport.Proof)
	ctx, cancel := context.WithCancel(transport.WithProof(a.d.ctx, proof))
	o := &opening{
		proof:    proof,
		part:     ranges.Range{Offset: quantity.Bytes(a.opened) * schedule.OpeningOrder, Length: bytes},
		isWhole:  bytes == ranges.ToEnd,
		link:     c,
		on:       c.session,
		sent:     time.Since(a.d.start),
		cancel:   cancel,
		answered: make(chan struct{}),
	}
	a.opened++
	a.openings = append(a.openings, o)
	if c.asking == nil {
		c.session.heardAt = o.sent
	}
	a.asks(c, c.session)
	target, part := a.d.target(c), o.part // adopt may shorten o.part meanwhile.
	a.d.wg.Go(func() { a.answer(o, target, part, ctx) })
}

// answer waits for the answer to an opening. The first answer begins the download.
func (a *asker) answer(o *opening, target transport.Target, part ranges.Range, ctx context.Context) {
	o.resource, o.body, o.err = o.on.Begin(ctx, target, part)
	close(o.answered)
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	c := o.link
	defer a.d.closer.settle(c, o.on)
	a.hasAnswer(c, o.on)
	a.d.fetcher.answered(c, o.on, o.sent, time.Since(a.d.start))
	switch {
	case ctx.Err() != nil:
		o.drop() // Once more: its body may have come after the first time.
	case a.d.payload != nil:
		// Its request reads the body.
	case a.d.race != nil:
		o.drop()
	case o.err != nil:
		o.drop()
		a.openings = slices.DeleteFunc(a.openings, func(other *opening) bool { return other == o })
		a.d.refusals.restore()
		a.unopened(c, o)
	default:
		if o.resource.NoRanges {
			a.whole = o
		}
		if err := a.learned(c, o.resource); err != nil {
			a.whole = nil
			o.drop()
			a.openings = slices.DeleteFunc(a.openings, func(other *opening) bool { return other == o })
			a.d.fetcher.trouble(c, o.on, err)
			return
		}
		// The server has answered a second request, if the first one asks for the whole file.
		a.d.repeats = a.d.repeats || !o.isWhole
		a.adopt()
		a.lead(o)
		a.d.fetcher.goOn()
		a.d.assign()
		a.fill()
	}
}

// fill requests as many bytes beyond the openings as slow start has room for. A record of TLS is
// longer than TCP's first window. So the client reads the first bytes a round trip after they
// arrive, which would be too late for the next request.
func (a *asker) fill() {
	for _, c := range a.d.connections {
		isOpening := c.newest != nil && len(c.active) == 1
		if isOpening && (!c.link.HasSeveral() || c.startRoom() > schedule.OpeningOrder) {
			a.d.fetcher.request(c)
		}
	}
}

// unopened decides what follows from an opening that failed. A HEAD may still succeed, unless the
// server asks to wait or redirects.
func (a *asker) unopened(c *connection, o *opening) {
	if a.d.refusals.isUsedUp(c, o.err) {
		a.d.refusals.spend(c, o.err)
		return
	}
	c.problem = o.err
	a.noRange = a.noRange || errors.Is(o.err, transport.ErrNoRanges)
	status := new(transport.StatusError)
	switch {
	case errors.As(o.err, new(*transport.RedirectError)), isDoubtful(o.err), transfer.IsPermanent(o.err),
		errors.As(o.err, &status) && status.Temporary() && (c.failures < 2 || status.RetryAfter > 0):
		a.d.fetcher.trouble(c, o.on, o.err)
	case c.isFirst() && c.session == o.on && !a.isAsked():
		a.startAsking(c, o.on)
	case c.session == o.on:
		// Another connection asks, or this is not the link's first one.
		c.failures++
		c.notBefore = time.Since(a.d.start) + transfer.Backoff(c.failures)
	}
}

// adopt makes openings requests for ranges, as far as their bytes are missing.
func (a *asker) adopt() {
	now := time.Since(a.d.start)
	for _, o := range a.openings {
		if o == a.whole && a.d.race != nil {
			continue // The race reads its body.
		}
		o.part.Length = min(o.part.Length, a.d.part.End()-o.part.Offset)
		if o.isWhole {
			if o.part.Length = min(o.part.Length, a.d.limit()); !o.link.link.isSlowToAnswer {
				o.part.Length = min(o.part.Length, schedule.OpeningOrder)
			}
		}
		isThere := o.link.session == o.on || o.isWhole && o.isAnswered() && slices.Contains(o.link.completing, o.on)
		usable := a.d.payload != nil && isThere && o.part.Length > 0 && o.part.End() <= a.d.limit()
		if !usable || o.isAnswered() && o.err != nil || !a.d.payload.TakeAll(o.part) {
			o.drop()
			continue
		}
		a.d.fetcher.issue(o.link, order{Range: o.part}, o, now)
	}
	a.openings = nil
}

// lead makes all links request from the URL of the first answer, without the redirects before it. So the client learns
// whether that URL works more than once. It expects other answers to take as long as the first one.
func (a *asker) lead(o *opening) {
	if a.d.payload == nil {
		return
	}
	to := a.d.origin.url
	for _, c := range a.d.connections {
		if o.link.link.isSlowToAnswer && len(c.delays) == 0 {
			c.link.isSlowToAnswer = true
			c.delays = append(c.delays, time.Since(a.d.start)-o.sent)
		}
		if c.url.String() == to.String() {
			continue
		}
		isElsewhere := !transport.IsSameOrigin(c.url, to)
		if c.url = to; isElsewhere && c.session != nil {
			a.d.closer.lose(c, c.session)
		}
	}
}

func (o *opening) isAnswered() bool {
	select {
	case <-o.answered:
		return true
	default:
		return false
	}
}

// result waits for the answer, which must be of that resource, and returns its body.
func (o *opening) result(ctx context.Context, of transport.Resource) (io.ReadCloser, error) {
	select {
	case <-o.answered:
	case <-ctx.Done():
		o.drop()
		return nil, ctx.Err()
	}
	if o.err != nil {
		return nil, o.err
	}
	if o.resource.NoRanges {
		o.drop()
		return nil, transport.ErrNoRanges
	}
	if err := of.CheckSame(o.resource); err != nil {
		o.drop()
		return nil, err
	}
	return o.body, nil
}

// drop gives the opening up and closes its body.
func (o *opening) drop() {
	o.cancel()
	if o.isAnswered() && o.body != nil {
		o.body.Close()
	}
}

// isOpening reports whether the connection waits for the answer to its opening, which is no request yet.
func (a *asker) isOpening(c *connection) bool {
	return a.opens() && c.asking == c.session && len(c.active) == 0
}
