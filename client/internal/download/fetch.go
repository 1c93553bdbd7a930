package download

import (
	"errors"
	"time"

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

// received is the end of what a request brought: all of it, or an error. isCanceled says that the engine ended it.
// unwritten is how many of the counted bytes could not be written.
type received struct {
	c          *connection
	r          *request
	isCanceled bool
	unwritten  quantity.Bytes
	err        error
}

func (e received) step(d *download) {
	e.r.received -= e.unwritten
	e.r.session.active--
	defer d.settle(e.c, e.r.session)
	if e.r.race != nil {
		e.r.race.ended(e)
	} else {
		d.rangeEnded(e)
	}
}

func (d *download) rangeEnded(e received) {
	c, r, err, now := e.c, e.r, e.err, d.now
	if r.complete() {
		if errors.Is(err, transport.ErrTooLong) {
			d.fail(c.link.Name, err)
		}
		return
	}
	cancelled := d.isOver || r.dropped && !errors.As(err, new(sinkError))
	if !r.dropped {
		left := d.drop(c, r, now)
		d.release(r, left)
		if !cancelled {
			d.recordFailover(&c.link.commonLink, "", left.Length, lost, now)
		}
	}
	if extra := r.received - r.needed; r.isSplit && extra > 0 { // The duplicate brings these bytes.
		c.link.raced, r.wasted, r.received = c.link.raced+extra, r.wasted+extra, r.needed
	}
	err = d.recordEarlyEnd(&c.link.commonLink, r, cancelled, err, now)
	if d.payload != nil {
		d.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
		d.completeIfAllArrived(now)
	} else {
		d.race.keep(ranges.Range{Offset: r.Offset, Length: r.received})
	}
	if !cancelled {
		d.trouble(c, r.session, err)
	}
	d.assign()
}

func (d *download) trouble(c *connection, s *session, err error) {
	redirect := new(transport.RedirectError)
	if !errors.As(err, &redirect) {
		d.balance.Failed()
	}
	d.pay()
	defer d.turn(err)
	switch {
	case d.isOver:
	case errors.As(err, new(sinkError)):
		d.finish(err)
	case d.isUsedUp(c, err):
		d.spend(c, err)
	case errors.As(err, &redirect) && !c.isFirst():
		d.remove(c, d.now)
	case errors.As(err, &redirect):
		for _, other := range c.link.connections {
			if other != c {
				d.remove(other, d.now)
			}
		}
		d.redirect(c, s, redirect)
	case errors.Is(err, transport.ErrTooLong):
		d.fail(c.link.Name, err)
	default:
		d.failed(c, s, err)
	}
}

// redirect lets the connection go on at the URL to which the server redirects it.
func (d *download) redirect(c *connection, s *session, to *transport.RedirectError) {
	if c.hops++; c.hops > d.maxHops() {
		d.exclude(c, d.errTooManyHops(to))
		return
	}
	if s != c.session {
		return
	}
	if c.redirected(to, d.URL.Scheme) {
		d.proceed(c)
	} else {
		d.lose(c, s)
	}
}

// read is bytes of a body that arrived.
type read struct {
	c     *connection
	r     *request
	bytes int
	arrival
}

func (e *read) step(d *download) {
	r := e.r
	for r.isWhole && r.left() <= quantity.Bytes(e.bytes) && d.isProbed(r) {
		if !d.takeBack(e.c, r) { // Another connection took the rest during the read.
			break
		}
	}
	e.arrival = r.read(e.bytes)
}

// progress is wanted bytes that arrived. It counts them, and sends the connection's next request when enough of its
// newest one has arrived.
type progress struct {
	c     *connection
	r     *request
	bytes quantity.Bytes
}

func (e progress) step(d *download) {
	c, r, bytes, now := e.c, e.r, e.bytes, d.now
	d.arrived(c, r, bytes, now)
	if r.dropped {
		return
	}
	c.expected -= bytes
	if r.hedged {
		d.endHedge(r, now)
	}
	if r.complete() {
		d.endRequest(c, r, now)
		d.recordEnd(&c.link.commonLink, r, rundir.Complete, nil, now)
		d.payload.Arrived(ranges.Range{Offset: r.Offset, Length: r.received})
		d.endOther(r, now)
		d.decideHeld()
		d.completeIfAllArrived(now)
	}
	if d.due(c, r, now) {
		c.newest = nil
		d.request(c)
	}
	d.await(c)
}

// arrived counts bytes of a body. Only new bytes are progress: if a server cuts each whole
// answer at the same place, the count of failures goes on.
func (d *download) arrived(c *connection, r *request, bytes quantity.Bytes, now time.Duration) {
	if r.received == bytes {
		d.worksAgain(c, r)
		d.answered(c, r.session, r.issued, now)
		if r.alone {
			c.idleDelay = now - r.issued
			if c.leastDelay == 0 || c.idleDelay < c.leastDelay {
				c.leastDelay = c.idleDelay
			}
		}
	}
	fresh := d.countArrived(&c.link.commonLink, &c.commonConnection, r, bytes, now)
	if added := r.session.hole.deliver(bytes); added > 0 {
		c.delivered(added, now)
	}
	if r.session.wait.since > 0 {
		r.session.heardAt, r.session.wait = now, wait{}
	}
	if r.session == c.session {
		c.hops, c.link.portal = 0, false
		d.trust(c)
	}
	if fresh > 0 {
		r.session.delivered, d.unranged = true, 0
		if r.session == c.session {
			c.failures = 0
		}
	}
	if fresh == 0 {
		d.pay()
	}
}

// worksAgain notes that a second request was answered: the URL works more than once.
func (d *download) worksAgain(c *connection, r *request) {
	if r.isWhole || d.repeats || c.url.String() != d.origin.url.String() {
		return
	}
	d.repeats = true
	d.restore()
	d.decideHeld()
}

// decideHeld makes the answer to the request for the whole file decide whether it goes on, if the
// engine holds its last byte.
func (d *download) decideHeld() {
	for _, c := range d.connections {
		if r := c.whole(); r != nil {
			d.do(notifyWorker{r.more})
		}
	}
}

// answered notes the time from a request to its answer. A server is slow to answer if the link
// brought nothing else meanwhile; else the link itself was busy.
func (d *download) answered(c *connection, s *session, sent, now time.Duration) {
	brings := c.link.Last > sent && c.link.Last < now
	c.link.isSlowToAnswer = now-sent >= firstSilence && !brings && (c.link.isSlowToAnswer || s.wait.since > 0)
}
