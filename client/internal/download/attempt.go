package download

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// attempt is an attempt to connect. It is an action, which ends with the event attempted.
type attempt struct {
	d   *download
	c   *connection
	url *url.URL
	// address is what the client dials.
	address string
	// timeout limits the attempt. between is how long it waits for the answer to a SYN until it sends another
	// one, 0 for one SYN. Then timeout limits what follows the first answer.
	timeout, between time.Duration
	// mayReuse says that a connection of the pool will do.
	mayReuse bool
	// silent is the connection's silent session, if the attempt is made beside it.
	silent *session
	cancel context.CancelFunc
}

var errNoAnswer = errors.New("no answer in time")

func (a *attempt) perform() {
	d := a.d
	if a.mayReuse {
		if conn := d.Pool.take(a.c.link.Name, a.url); conn != nil && d.origin.reaches(a.url, conn) {
			a.cancel = func() {}
			d.pending = append(d.pending, &attempted{attempt: a, conn: conn})
			return
		} else if conn != nil {
			conn.Close()
		}
	}
	most := a.timeout
	if a.between > 0 {
		most = mostAttempt
	}
	var ctx context.Context
	ctx, a.cancel = context.WithTimeoutCause(d.ctx, most, errNoAnswer)
	d.launch(func() {
		defer a.cancel()
		d.post(a.run(ctx))
	})
}

func (a *attempt) run(ctx context.Context) *attempted {
	d := a.d
	started := time.Since(d.start)
	dial := func(ctx context.Context) (link.Socket, error) { return a.c.link.Dial(ctx, a.address) }
	socket, err := transfer.Dial(transport.To(ctx, a.url), dial, a.between)
	if err != nil {
		return &attempted{attempt: a, err: attemptError(ctx, err)}
	}
	connected := time.Since(d.start)
	if a.between > 0 {
		d.caller().call(reached{a, connected - started})
		opening, end := context.WithTimeoutCause(ctx, a.timeout, errNoAnswer)
		defer end()
		ctx = opening
	}
	conn, err := transport.Open(ctx, socket, dial, d.TLS, d.Hellos, a.url)
	if err != nil {
		return &attempted{attempt: a, err: attemptError(ctx, err)}
	}
	return &attempted{attempt: a, conn: conn, tcp: connected - started, tls: time.Since(d.start) - connected}
}

// attemptError is the error of an attempt to connect. An attempt that ran out of time has
// errNoAnswer. The server chose the names in a certificate: they are made printable.
func attemptError(attempt context.Context, err error) error {
	if attempt.Err() != nil && !transfer.IsPermanent(err) {
		return context.Cause(attempt)
	}
	return printable.Error(err)
}

type cancelAttempt struct{ a *attempt }

func (a cancelAttempt) perform() { a.a.cancel() }

// paused is a pause before the next attempt of a connection. It is an action, and its end is an event.
type paused struct {
	d     *download
	c     *connection
	pause time.Duration
	end   context.CancelFunc
}

func (p *paused) perform() {
	var ctx context.Context
	ctx, p.end = context.WithTimeout(p.d.ctx, p.pause)
	p.d.launch(func() {
		defer p.end()
		<-ctx.Done()
		p.d.post(p)
	})
}

func (p *paused) step(*download) {
	if p.c.pausing == p {
		p.c.pausing = nil
	}
}

type endPause struct{ p *paused }

func (e endPause) perform() { e.p.end() }

// reached says that the server answered a SYN of an attempt after a time.
type reached struct {
	*attempt
	after time.Duration
}

func (e reached) step(d *download) {
	c := e.c
	c.link.answers = c.link.answers || e.after > e.between
	if c.suspect && c.session != nil {
		// Other connections of the link bring these bytes while this one is made.
		e.silent = c.session
		d.clear(c, c.session, lost, d.now)
	}
	d.maintain(d.now)
}

// attempted is the end of an attempt, after the times of the TCP and the TLS handshake.
type attempted struct {
	*attempt
	conn     *transport.Conn
	tcp, tls time.Duration
	err      error
}

func (e *attempted) step(d *download) {
	c := e.c
	c.attempt = nil
	isWanted := !d.isOver && c.needsSession() && c.url == e.url && e.address == d.origin.dialed(e.url)
	switch {
	case e.err == nil && isWanted:
		event := &rundir.Connected{Protocol: e.conn.Protocol, TCP: e.tcp.Nanoseconds(), TLS: e.tls.Nanoseconds()}
		d.connected(c, e.url, e.conn, event)
	case e.err == nil:
		d.do(closeConn{e.conn})
	case e.silent != nil && c.session == e.silent && !d.hasOnly(c, e.silent):
		// The session has no requests any more that could show that it works, and the
		// server may serve only one connection at a time.
		c.session = nil
		d.close(c, e.silent, false)
	}
	switch {
	case !c.isFirst():
		d.notAdded(c, e.err)
	case !d.isOver:
		pause := link.Wait(e.err)
		if e.err != nil && pause == 0 && c.needsSession() {
			pause = d.unreachable(c, e.err)
		}
		if pause > 0 {
			d.pauseAttempts(c, pause)
		}
	}
}
