package download

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// connector connects the links' connections, and connects them again.
type connector struct{ d *download }

// keep connects a link's first connection, and connects it again when it needs a session.
func (n *connector) keep(ctx context.Context, c *connection) {
	for n.awaitNeed(ctx, c) {
		n.d.mu.Lock()
		backoff := c.notBefore - time.Since(n.d.start)
		repeated := c.failures > 1
		n.d.mu.Unlock()
		// After the first failure the connection connects at once, and is ready when the backoff
		// ends.
		if repeated && backoff > 0 {
			n.pause(ctx, c, backoff)
			continue
		}
		err := n.connect(ctx, c)
		n.d.mu.Lock()
		if ctx.Err() != nil {
			n.d.mu.Unlock()
			return
		}
		pause := link.Wait(err)
		if err != nil && pause == 0 && c.needsSession() {
			pause = n.d.refusals.unreachable(c, err)
		}
		n.d.mu.Unlock()
		if pause > 0 {
			n.pause(ctx, c, pause)
		}
	}
}

// awaitNeed waits until the connection needs a session. It reports false if it never will.
func (n *connector) awaitNeed(ctx context.Context, c *connection) bool {
	for ctx.Err() == nil {
		n.d.mu.Lock()
		out, needed := c.out != nil, c.needsSession()
		n.d.mu.Unlock()
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

// connect makes a connection ready for requests.
func (n *connector) connect(ctx context.Context, c *connection) error {
	n.d.mu.Lock()
	if c.out != nil {
		// The connection was given up before this attempt began.
		n.d.mu.Unlock()
		return nil
	}
	timeout, between := n.attemptTimeout(c), n.betweenAttempts(c)
	most := timeout
	if between > 0 {
		most = mostAttempt
	}
	attempt, cancel := context.WithTimeoutCause(ctx, most, errNoAnswer)
	c.abandonAttempt = cancel
	u := c.url
	if c.session == nil && c.failures == 0 {
		if conn := n.d.Pool.take(c.link.Name, u); conn != nil && !n.d.origin.reaches(u, conn) {
			conn.Close()
		} else if conn != nil {
			defer n.d.mu.Unlock()
			defer cancel()
			n.connected(c, u, conn, &rundir.Connected{Protocol: conn.Protocol})
			return nil
		}
	}
	address := n.d.origin.dialed(u)
	n.d.mu.Unlock()
	defer cancel()

	started := time.Since(n.d.start)
	dial := func(ctx context.Context) (link.Socket, error) { return c.link.Dial(ctx, address) }
	socket, err := transfer.Dial(attempt, dial, between)
	if err != nil {
		return attemptError(attempt, err)
	}
	connected := time.Since(n.d.start)
	var silent *session
	if between > 0 {
		n.d.mu.Lock()
		c.link.answers = c.link.answers || connected-started > between
		if c.suspect && c.session != nil {
			// Other connections of the link bring these bytes while this one is made.
			silent = c.session
			n.d.closer.clear(c, silent, lost, connected)
		}
		n.d.grower.maintain(connected)
		n.d.mu.Unlock()
		opening, end := context.WithTimeoutCause(attempt, timeout, errNoAnswer)
		defer end()
		attempt = opening
	}
	conn, err := transport.Open(attempt, socket, dial, n.d.TLS, n.d.Hellos, u)
	if err != nil {
		n.d.mu.Lock()
		if silent != nil && c.session == silent && !n.d.fetcher.hasOnly(c, silent) {
			// The session has no requests any more that could show that it works, and the
			// server may serve only one connection at a time.
			c.session = nil
			n.d.closer.close(c, silent, false)
		}
		n.d.mu.Unlock()
		return attemptError(attempt, err)
	}

	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	if ctx.Err() != nil || !c.needsSession() || c.url != u || address != n.d.origin.dialed(u) {
		conn.Close()
		return nil
	}
	n.connected(c, u, conn, &rundir.Connected{
		TCP:      (connected - started).Nanoseconds(),
		TLS:      (time.Since(n.d.start) - connected).Nanoseconds(),
		Protocol: conn.Protocol,
	})
	return nil
}

var errNoAnswer = errors.New("no answer in time")

// connected gives the connection its session, and records it.
func (n *connector) connected(c *connection, u *url.URL, conn *transport.Conn, event *rundir.Connected) {
	now := time.Since(n.d.start)
	n.install(c, &session{Conn: conn, authority: u.Host, unread: conn.Unread(), bodies: conn.Bodies()}, now)
	if event.TCP > 0 && c.link.HasSeveral() && c.link.Meter.Total() == 0 {
		c.link.Shown.Add(now, conn.Received())
	}
	if event.TCP > 0 {
		c.handshake = time.Duration(event.TCP)
	}
	event.Link, event.RTT = c.link.Name, c.rtt.Last.Nanoseconds()
	n.d.record(now, event)
	n.proceed(c)
}

// attemptError is the error of an attempt to connect. An attempt that ran out of time has
// errNoAnswer. The server chose the names in a certificate: they are made printable.
func attemptError(attempt context.Context, err error) error {
	if attempt.Err() != nil && !transfer.IsPermanent(err) {
		return context.Cause(attempt)
	}
	return printable.Error(err)
}

// install gives the connection a session. The unfinished bytes of its older session are free again,
// unless the server is completing them, or they may be the URL's only answer.
func (n *connector) install(c *connection, s *session, now time.Duration) {
	if old := c.session; old != nil {
		completing := old.draining && !c.suspect
		if !completing {
			n.d.closer.clear(c, old, lost, now)
			completing = n.d.fetcher.hasOnly(c, old)
		}
		if completing {
			c.completing = append(c.completing, old)
		}
		c.newest = nil
		n.d.closer.close(c, old, completing)
		if len(c.completing) > mostCompleting {
			// If all have an only answer, the oldest goes.
			given := slices.IndexFunc(c.completing, func(s *session) bool { return !n.d.fetcher.hasOnly(c, s) })
			n.d.closer.giveUpOn(c, c.completing[max(0, given)], lost, now)
		}
	}
	if c.link.Requests > 0 {
		if c.link.hasOnly(c) {
			c.link.Meter.Restart(now)
		}
		c.pace = throughput.NewPace(transfer.PaceWindow)
	}
	c.session = s
	n.d.sessions = append(n.d.sessions, s)
	c.suspect = false
	s.since, s.heardAt = now, now
	c.measure()
	s.hole.outOfOrder = c.rtt.OutOfOrder // A pooled connection may have had some.
}

// proceed gives a connection its next task.
func (n *connector) proceed(c *connection) {
	if time.Since(n.d.start) < c.notBefore {
		return
	}
	switch {
	case n.d.race != nil:
		n.d.race.enter(c)
	case n.d.payload != nil:
		if c.newest == nil {
			n.d.fetcher.request(c)
		}
	case n.d.asker.opens() && n.d.Resource == nil && !n.d.asker.noRange && !n.d.asker.isAsked():
		if c.asking == nil {
			n.d.asker.open(c)
		}
	case c.asking == nil && !n.d.asker.isAsked():
		n.d.asker.startAsking(c, c.session)
	}
}

func (n *connector) attemptTimeout(c *connection) time.Duration {
	least := firstAttempt
	if c.rtt.Last > 0 {
		least = max(leastAttempt, transfer.AttemptTrips*c.rtt.Last)
	}
	return transfer.Doubled(least, c.failures, mostAttempt)
}

// betweenAttempts is how long a silent connection of several waits for the answer to its first
// SYN until it sends another one: half a round trip, queue included. For others it is 0.
func (n *connector) betweenAttempts(c *connection) time.Duration {
	if !c.link.HasSeveral() || !c.suspect {
		return 0
	}
	if c.rtt.Last == 0 {
		return transfer.LeastBackoff
	}
	return max(transfer.CheckInterval, c.rtt.Last/2)
}

// pause waits until the time has passed, or until an attempt may succeed at once.
func (n *connector) pause(ctx context.Context, c *connection, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-c.hurry:
	}
}
