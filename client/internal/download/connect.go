package download

import (
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// This file decides when connections connect, and gives them their sessions.

// reconnect connects the links' first connections that need a session.
func (d *download) reconnect() {
	for _, c := range d.connections {
		d.connect(c)
	}
}

// connect connects a link's first connection if it needs a session. After the first failure it connects at once, and is
// ready when the backoff ends.
func (d *download) connect(c *connection) {
	backoff := c.notBefore - d.now
	switch {
	case d.isOver || !c.isFirst() || c.attempt != nil || c.pausing != nil || !c.needsSession():
	case c.failures > 1 && backoff > 0:
		c.skipsPause = false
		d.pauseAttempts(c, backoff)
	default:
		d.dial(c)
	}
}

func (d *download) dial(c *connection) {
	c.attempt = &attempt{
		d: d, c: c, url: c.url, address: d.origin.dialed(c.url),
		timeout: c.attemptTimeout(), between: c.betweenAttempts(),
		mayReuse: c.session == nil && c.failures == 0,
	}
	d.do(c.attempt)
}

// pauseAttempts lets the connection wait until its next attempt, unless skipPause was called.
func (d *download) pauseAttempts(c *connection, pause time.Duration) {
	if c.skipsPause {
		c.skipsPause = false
		return
	}
	c.pausing = &paused{d: d, c: c, pause: pause}
	d.do(c.pausing)
}

// skipPause ends the connection's present or next pause: an attempt may succeed at once.
func (d *download) skipPause(c *connection) {
	if c.pausing == nil {
		c.skipsPause = true
		return
	}
	d.do(endPause{c.pausing})
	c.pausing = nil
}

func (d *download) abandonAttempt(c *connection) {
	if c.attempt != nil {
		d.do(cancelAttempt{c.attempt})
	}
}

func (d *download) connected(c *connection, u *url.URL, conn *transport.Conn, event *rundir.Connected) {
	d.install(c, newSession(conn, u), d.now)
	if event.TCP > 0 && c.link.HasSeveral() && c.link.Meter.Total() == 0 {
		c.link.Shown.Add(d.now, conn.Received())
	}
	d.recordConnected(&c.link.commonLink, &c.commonConnection, event, d.now)
	d.proceed(c)
}

// install gives the connection a session. The unfinished bytes of its older session are free again,
// unless the server is completing them, or they may be the URL's only answer.
func (d *download) install(c *connection, s *session, now time.Duration) {
	if old := c.session; old != nil {
		completing := old.draining && !c.suspect
		if !completing {
			d.clear(c, old, lost, now)
			completing = d.hasOnly(c, old)
		}
		if completing {
			c.completing = append(c.completing, old)
		}
		c.newest = nil
		d.close(c, old, completing)
		if len(c.completing) > mostCompleting {
			// If all have an only answer, the oldest goes.
			given := slices.IndexFunc(c.completing, func(s *session) bool { return !d.hasOnly(c, s) })
			d.giveUpOn(c, c.completing[max(0, given)], lost, now)
		}
	}
	if c.link.Requests > 0 {
		if c.link.hasOnly(c) {
			c.link.Meter.Restart(now)
		}
		c.pace = throughput.NewPace(schedule.PaceWindow)
	}
	c.session = s
	d.sessions = append(d.sessions, s)
	c.suspect = false
	s.since, s.heardAt = now, now
	c.measure()
	s.hole.outOfOrder = c.rtt.OutOfOrder // A pooled connection may have had some.
}

// proceed gives a connection its next task.
func (d *download) proceed(c *connection) {
	if d.now < c.notBefore {
		return
	}
	switch {
	case d.race != nil:
		d.race.enter(c)
	case d.payload != nil:
		if c.newest == nil {
			d.request(c)
		}
	case d.opens() && d.Resource == nil && !d.noRange && !d.isAsked():
		if c.asking == nil {
			d.open(c)
		}
	case c.asking == nil && !d.isAsked():
		d.startAsking(c, c.session)
	}
}

func (c *connection) attemptTimeout() time.Duration {
	least := firstAttempt
	if c.rtt.Last > 0 {
		least = max(leastAttempt, transfer.AttemptTrips*c.rtt.Last)
	}
	return transfer.Doubled(least, c.failures, mostAttempt)
}

// betweenAttempts is how long a silent connection of several waits for the answer to its first
// SYN until it sends another one: half a round trip, queue included. For others it is 0.
func (c *connection) betweenAttempts() time.Duration {
	if !c.link.HasSeveral() || !c.suspect {
		return 0
	}
	if c.rtt.Last == 0 {
		return transfer.LeastBackoff
	}
	return max(transfer.CheckInterval, c.rtt.Last/2)
}
