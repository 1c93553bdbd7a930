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

// opening is a request for a range of a resource of which nothing is known:
// every connection that is made before the first answer sends one, each for
// other bytes. A server that serves ranges tells with them what a HEAD would,
// and a round trip earlier.
type opening struct {
	part   ranges.Range
	link   *connection
	on     *session
	sent   time.Duration
	cancel context.CancelFunc
	// answered is closed when the rest is known.
	answered chan struct{}
	resource transport.Resource
	body     io.ReadCloser
	err      error
}

// isNew reports whether all bytes are missing: where most may be there already,
// the first ones are not worth asking for before that is known.
func (d *download) isNew() bool { return d.Slice == nil && d.earlier == nil }

// open asks on a connected link for the next bytes that nobody has asked for.
func (d *download) open(c *connection) { d.openFor(c, schedule.OpeningOrder) }

// openFor asks for so many.
func (d *download) openFor(c *connection, bytes quantity.Bytes) {
	if len(d.openings) == 0 {
		d.opened = 0
	}
	ctx, cancel := context.WithCancel(d.ctx)
	o := &opening{
		part:     ranges.Range{Offset: quantity.Bytes(d.opened) * schedule.OpeningOrder, Length: bytes},
		link:     c,
		on:       c.session,
		sent:     time.Since(d.start),
		cancel:   cancel,
		answered: make(chan struct{}),
	}
	d.opened++
	d.openings = append(d.openings, o)
	if c.asking == nil {
		c.session.heardAt = o.sent
	}
	c.asks(c.session)
	target, part := d.target(c), o.part // Which adopt may shorten meanwhile.
	d.wg.Go(func() { d.answer(o, target, part, ctx) })
}

// asks counts a question about the file on a session of the link.
func (c *connection) asks(s *session) {
	if c.asking != s {
		c.asking, c.questions = s, 0
	}
	c.questions++
}

// hasAnswer counts the answer to one.
func (c *connection) hasAnswer(s *session) {
	if c.asking != s {
		return
	}
	if c.questions--; c.questions == 0 {
		c.asking = nil
	}
}

// answer awaits the answer. The first one begins the download.
func (d *download) answer(o *opening, target transport.Target, part ranges.Range, ctx context.Context) {
	o.resource, o.body, o.err = o.on.Begin(ctx, target, part)
	close(o.answered)
	d.mu.Lock()
	defer d.mu.Unlock()
	c := o.link
	c.hasAnswer(o.on)
	d.answered(c, o.on, o.sent, time.Since(d.start))
	switch {
	case ctx.Err() != nil:
		o.drop() // Again, if it was dropped while the answer came.
	case d.payload != nil:
		// Whose request it is looks after it.
	case d.race != nil:
		o.drop()
	case o.err != nil:
		o.drop()
		d.openings = slices.DeleteFunc(d.openings, func(other *opening) bool { return other == o })
		d.unopened(c, o)
	default:
		if err := d.begin(c, o.resource); err != nil {
			o.drop()
			d.openings = slices.DeleteFunc(d.openings, func(other *opening) bool { return other == o })
			d.trouble(c, o.on, err)
			return
		}
		d.adopt()
		d.assign()
		d.fill()
	}
}

// fill orders what slow start has room for beyond the openings. A record of TLS is
// longer than the first window, so that the first bytes can only be read a round
// trip after they have come: to order then would be too late.
func (d *download) fill() {
	for _, c := range d.connections {
		isOpening := c.newest != nil && len(c.active) == 1
		if isOpening && (!c.link.HasSeveral() || c.startRoom() > schedule.OpeningOrder) {
			d.request(c)
		}
	}
}

// unopened decides what follows from an opening that failed: another question
// may do better, but not where the server asks to wait or leads elsewhere.
func (d *download) unopened(c *connection, o *opening) {
	c.problem = o.err
	status := new(transport.StatusError)
	switch {
	case errors.As(o.err, new(*transport.RedirectError)), isDoubtful(o.err),
		errors.As(o.err, &status) && status.Temporary() && (c.failures < 2 || status.RetryAfter > 0):
		d.trouble(c, o.on, o.err)
	case c.isFirst() && c.session == o.on && !d.isAsked():
		d.startAsking(c, o.on)
	case c.session == o.on:
		// Another connection asks, or this is no first one.
		c.failures++
		c.notBefore = time.Since(d.start) + transfer.Backoff(c.failures)
	}
}

// adopt makes openings requests of their links, as far as their bytes are
// missing.
func (d *download) adopt() {
	now := time.Since(d.start)
	for _, o := range d.openings {
		o.part.Length = min(o.part.Length, d.part.End()-o.part.Offset)
		usable := d.payload != nil && o.link.session == o.on && o.part.Length > 0 && o.part.End() <= d.limit()
		if !usable || o.isAnswered() && o.err != nil || !d.payload.TakeAll(o.part) {
			o.drop()
			continue
		}
		d.issue(o.link, o.part, "", o, now)
	}
	d.openings = nil
}

func (o *opening) isAnswered() bool {
	select {
	case <-o.answered:
		return true
	default:
		return false
	}
}

// result awaits the answer, which must be of that resource.
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
	if err := of.CheckSame(o.resource); err != nil {
		o.drop()
		return nil, err
	}
	return o.body, nil
}

// drop gives the opening up.
func (o *opening) drop() {
	o.cancel()
	if o.isAnswered() && o.body != nil {
		o.body.Close()
	}
}
