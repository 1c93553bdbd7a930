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
	d      *download
	part   ranges.Range
	target transport.Target
	link   *connection
	on     *session
	sent   time.Duration
	cancel context.CancelFunc
	// isWhole says that the request is for the file from its first byte to its end.
	isWhole bool
	// isAnswered and isDropped are the loop's: the answer has come, or is not wanted any more.
	isAnswered, isDropped bool
	// isCanceled says that the request was canceled when the answer came, as that of a range that took it over.
	isCanceled bool
	// answered is closed when the rest is known.
	answered chan struct{}
	resource transport.Resource
	body     io.ReadCloser
	err      error
	proof    *transport.Proof
}

// opens reports whether the first request is a GET for bytes, not a HEAD. Its answer brings bytes a round trip earlier. A
// call that resumes a download does not know yet which bytes are missing.
func (d *download) opens() bool {
	return d.Slice == nil && d.earlier == nil && (d.Connections != nil || d.plan != nil && d.plan.opens)
}

// open sends an opening on a connection. The first connection that is ready asks for the whole file, since
// the URL may work only once. The others take their parts of it later. They send openings, too, if no answer comes soon:
// a server that serves one connection at a time may serve another one first.
func (d *download) open(c *connection) {
	isAwaited, isLate := d.awaited()
	switch {
	case isLate:
		d.openFor(c, schedule.OpeningOrder)
	case !isAwaited:
		d.openFor(c, ranges.ToEnd)
	}
}

// awaited reports whether an opening may still get an answer, and whether such an answer is late.
func (d *download) awaited() (isAwaited, isLate bool) {
	now := d.now
	for _, o := range d.openings {
		if !o.isAnswered && o.link.session == o.on && o.link.alive() {
			isAwaited = true
			isLate = isLate || now-o.sent >= max(firstSilence, 2*o.link.rtt.Last)
		}
	}
	return isAwaited, isLate
}

// awaitsWhole reports whether an opening for the whole file may still get an answer on session s; with nil, on any.
func (d *download) awaitsWhole(s *session) bool {
	return slices.ContainsFunc(d.openings, func(o *opening) bool {
		isLate := d.now-o.sent > d.mostPause()
		return o.isWhole && !o.isAnswered && !isLate && slices.Contains(o.link.sessions(), o.on) && (s == nil || s == o.on)
	})
}

func (d *download) openFor(c *connection, bytes quantity.Bytes) {
	if len(d.openings) == 0 || bytes == ranges.ToEnd {
		d.opened = 0
	}
	o := &opening{
		d:        d,
		proof:    new(transport.Proof),
		part:     ranges.Range{Offset: quantity.Bytes(d.opened) * schedule.OpeningOrder, Length: bytes},
		target:   d.target(c),
		isWhole:  bytes == ranges.ToEnd,
		link:     c,
		on:       c.session,
		sent:     d.now,
		answered: make(chan struct{}),
	}
	d.opened++
	d.openings = append(d.openings, o)
	if c.asking == nil {
		c.session.heardAt = o.sent
	}
	d.asks(c, c.session)
	d.do(o)
}

// step takes the answer to an opening. The first answer begins the download.
func (o *opening) step(d *download) {
	o.isAnswered = true
	c := o.link
	d.hasAnswer(c, o.on)
	d.answered(c, o.on, o.sent, d.now)
	isLearned := false
	switch {
	case d.isOver || o.isDropped || o.isCanceled:
		d.dropOpening(o) // Once more: its body may have come after the first time.
	case d.payload != nil:
		// Its request reads the body.
	case d.race != nil:
		d.dropOpening(o)
	case o.err != nil:
		d.forget(o)
		d.restore()
		d.unopened(c, o)
	default:
		if o.resource.NoRanges {
			d.wholeOpening = o
		}
		isLearned = d.learned(&learned{d: d, c: c, s: o.on, resource: o.resource, opened: o})
	}
	if !isLearned {
		d.settle(c, o.on)
	}
}

func (d *download) dropOpening(o *opening) {
	o.isDropped = true
	d.do(act(o.drop))
}

// forget gives an opening up that will not become a request.
func (d *download) forget(o *opening) {
	d.dropOpening(o)
	d.openings = slices.DeleteFunc(d.openings, func(other *opening) bool { return other == o })
}

// fillStart requests as many bytes beyond the openings as slow start has room for. A record of TLS is
// longer than TCP's first window. So the client reads the first bytes a round trip after they
// arrive, which would be too late for the next request.
func (d *download) fillStart() {
	for _, c := range d.connections {
		isOpening := c.newest != nil && len(c.active) == 1
		if isOpening && (!c.link.HasSeveral() || c.startRoom() > schedule.OpeningOrder) {
			d.request(c)
		}
	}
}

// unopened decides what follows from an opening that failed. A HEAD may still succeed, unless the
// server asks to wait or redirects.
func (d *download) unopened(c *connection, o *opening) {
	if d.isUsedUp(c, o.err) {
		d.spend(c, o.err)
		return
	}
	c.problem = o.err
	d.noRange = d.noRange || errors.Is(o.err, transport.ErrNoRanges)
	status := new(transport.StatusError)
	switch {
	case errors.As(o.err, new(*transport.RedirectError)), isDoubtful(o.err), transfer.IsPermanent(o.err),
		errors.As(o.err, &status) && status.Temporary() && (c.failures < 2 || status.RetryAfter > 0):
		d.trouble(c, o.on, o.err)
	case c.isFirst() && c.session == o.on && !d.isAsked():
		d.startAsking(c, o.on)
	case c.session == o.on:
		// Another connection asks, or this is not the link's first one.
		c.fails(d.now)
	}
}

// adopt makes openings requests for ranges, as far as their bytes are missing.
func (d *download) adopt() {
	now := d.now
	for _, o := range d.openings {
		if o == d.wholeOpening && d.race != nil {
			continue // The race reads its body.
		}
		o.part.Length = min(o.part.Length, d.part.End()-o.part.Offset)
		if o.isWhole {
			if o.part.Length = min(o.part.Length, d.limit()); !o.link.link.isSlowToAnswer {
				o.part.Length = min(o.part.Length, schedule.OpeningOrder)
			}
		}
		isThere := o.link.session == o.on || o.isWhole && o.isAnswered && slices.Contains(o.link.completing, o.on)
		usable := d.payload != nil && isThere && o.part.Length > 0 && o.part.End() <= d.limit()
		if !usable || o.isAnswered && o.err != nil || !d.payload.TakeAll(o.part) {
			d.dropOpening(o)
			continue
		}
		d.issue(o.link, order{Range: o.part}, o, now)
	}
	d.openings = nil
}

// lead makes all links request from the URL of the first answer, without the redirects before it. So the client learns
// whether that URL works more than once. It expects other answers to take as long as the first one.
func (d *download) lead(o *opening) {
	if d.payload == nil {
		return
	}
	to := d.origin.url
	for _, c := range d.connections {
		if o.link.link.isSlowToAnswer && len(c.delays) == 0 {
			c.link.isSlowToAnswer = true
			c.delays = append(c.delays, d.now-o.sent)
		}
		if c.url.String() == to.String() {
			continue
		}
		isElsewhere := !transport.IsSameOrigin(c.url, to)
		if c.url = to; isElsewhere && c.session != nil {
			d.lose(c, c.session)
		}
	}
}

// isOpening reports whether the connection waits for the answer to its opening, which is no request yet.
func (d *download) isOpening(c *connection) bool {
	return d.opens() && c.asking == c.session && len(c.active) == 0
}
