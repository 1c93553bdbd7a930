package download

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// keep connects a link, and connects it again when it needs that.
func (d *download) keep(ctx context.Context, c *connection) {
	for d.awaitNeed(ctx, c) {
		d.mu.Lock()
		backoff := c.notBefore - time.Since(d.start)
		repeated := c.failures > 1
		d.mu.Unlock()
		// After the first failure it is connected at once, and ready when the
		// backoff ends.
		if repeated && backoff > 0 {
			c.pause(ctx, backoff)
			continue
		}
		err := d.connect(ctx, c)
		d.mu.Lock()
		if ctx.Err() != nil {
			d.mu.Unlock()
			return
		}
		pause, again := link.Wait(err), true
		if err != nil && pause == 0 && c.needsSession() {
			pause, again = d.policy.unreachable(c, err)
		}
		if !again {
			d.Log.Warn("link is not needed any more", "link", c.link.Name, "error", err)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		if pause > 0 {
			c.pause(ctx, pause)
		}
	}
}

// awaitNeed waits until the link needs a connection. It reports false if
// that will not be.
func (d *download) awaitNeed(ctx context.Context, c *connection) bool {
	for ctx.Err() == nil {
		d.mu.Lock()
		out, needed := c.out != nil, c.needsSession()
		d.mu.Unlock()
		switch {
		case out:
			return false
		case needed:
			return true
		}
		select {
		case <-ctx.Done():
		case <-c.need:
		}
	}
	return false
}

// connect makes the link ready for requests.
func (d *download) connect(ctx context.Context, c *connection) error {
	d.mu.Lock()
	if c.out != nil {
		// It was given up before this began.
		d.mu.Unlock()
		return nil
	}
	attempt, cancel := ctx, context.CancelFunc(func() {})
	timeout, between := c.attemptTimeout(), c.betweenAttempts()
	switch {
	case between > 0:
		attempt, cancel = context.WithTimeoutCause(ctx, mostAttempt, errNoAnswer)
	case d.policy.timed():
		attempt, cancel = context.WithTimeoutCause(ctx, timeout, errNoAnswer)
	}
	c.abandonAttempt = cancel
	u := c.url
	if c.session == nil && c.failures == 0 {
		if conn := d.Pool.take(c.link.Name, u); conn != nil && !d.reaches(u, conn) {
			conn.Close()
		} else if conn != nil {
			defer d.mu.Unlock()
			defer cancel()
			d.connected(c, u, conn, &rundir.Connected{Protocol: conn.Protocol})
			return nil
		}
	}
	address := d.dialed(u)
	d.mu.Unlock()
	defer cancel()

	started := time.Since(d.start)
	dial := func(ctx context.Context) (link.Socket, error) { return c.link.Dial(ctx, address) }
	socket, err := transfer.Dial(attempt, dial, between)
	if err != nil {
		return attemptError(attempt, err)
	}
	connected := time.Since(d.start)
	var silent *session
	if between > 0 {
		d.mu.Lock()
		c.link.answers = c.link.answers || connected-started > between
		if c.suspect && c.session != nil {
			// Connections that were kept go on with it while this one is made.
			silent = c.session
			d.abandon(c, c.on(silent), lost, connected)
		}
		d.policy.tend(connected)
		d.mu.Unlock()
		opening, end := context.WithTimeoutCause(attempt, timeout, errNoAnswer)
		defer end()
		attempt = opening
	}
	conn, err := transport.Open(attempt, socket, dial, d.TLS, u)
	if err != nil {
		d.mu.Lock()
		if silent != nil && c.session == silent {
			// Nothing is asked of it any more by which it could prove itself, and it
			// may be the one that the server serves at a time.
			c.session = nil
			d.close(c, silent, false)
		}
		d.mu.Unlock()
		return attemptError(attempt, err)
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil || !c.needsSession() || c.url != u || address != d.dialed(u) {
		conn.Close()
		return nil
	}
	d.connected(c, u, conn, &rundir.Connected{
		TCP:      (connected - started).Nanoseconds(),
		TLS:      (time.Since(d.start) - connected).Nanoseconds(),
		Protocol: conn.Protocol,
	})
	return nil
}

var errNoAnswer = errors.New("no answer in time")

// connected makes a connection that of the link, and tells of it.
func (d *download) connected(c *connection, u *url.URL, conn *transport.Conn, event *rundir.Connected) {
	now := time.Since(d.start)
	d.install(c, &session{Conn: conn, authority: u.Host, unread: conn.Unread()}, now)
	if event.TCP > 0 && c.link.HasSeveral() && c.link.Meter.Total() == 0 {
		c.link.Shown.Add(now, conn.Received())
	}
	if event.TCP > 0 {
		c.handshake = time.Duration(event.TCP)
	}
	event.Link, event.RTT = c.link.Name, c.rtt.Last.Nanoseconds()
	d.record(now, event)
	d.proceed(c)
}

// attemptError says of an attempt that ran out of time just that. The names in
// a certificate, or of where a redirect leads, are the server's.
func attemptError(attempt context.Context, err error) error {
	if attempt.Err() != nil && !transfer.IsPermanent(err) {
		return context.Cause(attempt)
	}
	return printable.Error(err)
}

// install makes the session that of the link. What an older one has still to
// deliver is free again, unless the server is just completing it.
func (d *download) install(c *connection, s *session, now time.Duration) {
	if old := c.session; old != nil {
		completing := old.draining && !c.suspect
		if completing {
			c.completing = append(c.completing, old)
		} else {
			d.abandon(c, c.on(old), lost, now)
		}
		c.newest = nil
		d.close(c, old, completing)
		for len(c.completing) > mostCompleting {
			d.giveUpOn(c, c.completing[0], lost, now)
		}
	}
	if c.link.Requests > 0 {
		if c.isOnly() {
			c.link.Meter.Restart(now)
		}
		c.pace = throughput.NewPace(transfer.PaceWindow)
	}
	c.session = s
	c.suspect = false
	s.since, s.heardAt = now, now
	c.measure()
	s.hole.outOfOrder = c.rtt.OutOfOrder // A kept connection had others.
}

// proceed gives the connected link something to do.
func (d *download) proceed(c *connection) {
	if time.Since(d.start) < c.notBefore {
		return
	}
	switch {
	case d.race != nil:
		d.enter(c)
	case d.payload != nil:
		if c.newest == nil {
			d.request(c)
		}
	case d.policy.eager() && d.Resource == nil && !d.isAsked():
		if c.asking == nil {
			d.open(c)
		}
	case c.asking == nil && !d.isAsked():
		d.startAsking(c, c.session)
	}
}

// close closes a session, if it is completing requests when they have ended.
func (d *download) close(c *connection, s *session, completing bool) {
	s.closed = true
	if !completing {
		s.Conn.Close()
	}
	d.settle(c, s)
}

// leave ends the use of a session at the end of a download. It is kept if it
// works, and if little that nobody wants is still on its way; not by a plan, which may have
// to let the radio sleep, and keep-alives would wake it.
func (d *download) leave(c *connection, s *session, complete bool) {
	_, planned := d.Scheduler.(schedule.Planner)
	if planned || !complete || !d.spare(c, s) {
		d.close(c, s, false)
	}
}

// spare keeps a session that nobody needs now, if that works.
func (d *download) spare(c *connection, s *session) bool {
	if d.Pool == nil || s != c.session || !c.usable(time.Since(d.start)) || !s.Usable() || s.stale-s.Unread() > mostKeptStale {
		return false
	}
	d.wasted(c, s)
	d.Pool.put(c.link.Name, c.url, s.Conn)
	return true
}

// settle counts the wasted bytes of a closed session.
func (d *download) settle(c *connection, s *session) {
	if !s.closed || s.active > 0 {
		return
	}
	c.completing = slices.DeleteFunc(c.completing, func(other *session) bool { return other == s })
	s.Conn.Close()
	d.wasted(c, s)
}

// giveUpOn ends a session that completes requests; others will.
func (d *download) giveUpOn(c *connection, s *session, reason string, now time.Duration) {
	c.completing = slices.DeleteFunc(c.completing, func(other *session) bool { return other == s })
	d.abandon(c, c.on(s), reason, now)
	d.close(c, s, false)
}

// wasted counts what a session received and nobody read, since it was told last.
func (d *download) wasted(c *connection, s *session) {
	if late := s.Unread() - s.unread; late > 0 {
		s.unread += late
		c.link.Wasted += late
		d.record(time.Since(d.start), &rundir.Late{Link: c.link.Name, Bytes: int64(late)})
	}
}

// lose gives up a session that takes no more requests. What it has still to
// deliver may yet come. Nobody connects a further connection again.
func (d *download) lose(c *connection, s *session) {
	if s != c.session {
		return
	}
	c.newest, c.leaving = nil, !c.isFirst()
	if s.active > 0 {
		s.draining = true
	} else {
		c.session = nil
		d.close(c, s, false)
	}
	c.wake()
}

// abandon gives up requests of a link; what they have not delivered is free
// again.
func (d *download) abandon(c *connection, requests []*request, reason string, now time.Duration) {
	var bytes quantity.Bytes
	for _, r := range requests {
		left := d.drop(c, r, now)
		d.release(r, left)
		bytes += left.Length
	}
	if bytes > 0 {
		d.failedOver(c, nil, bytes, reason, now)
	}
}
