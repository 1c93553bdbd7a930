package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// mostCompleting is how many older sessions of a link may complete requests at
// a time. A server may say goodbye whenever it has got a request, and take any
// time to answer it.
const mostCompleting = 2

// mostSessions is how many sessions a link with one connection has at a time: those, the
// present one, and one that is made. Each is one TCP connection, or http1Connections of
// the transport.
const mostSessions = mostCompleting + 2

// sessions is how many sessions a link has at a time. Only its first connection has older
// ones.
func (o Options) sessions() int {
	if o.Connections == nil {
		return mostSessions
	}
	return mostSessions + o.Connections.Most - 1
}

// session is a connection of a link.
type session struct {
	*transport.Conn
	authority string
	// requests is how many were issued, and active how many are in flight.
	requests, active int
	// delivered says that bytes of a body came since a request failed last.
	delivered bool
	// draining says that it takes no new requests.
	draining bool
	closed   bool
	// since is when it was made.
	since time.Duration
	// heard is how much it had received at heardAt.
	heard   quantity.Bytes
	heardAt time.Duration
	wait    wait
	// unread is what Unread was at the beginning.
	unread quantity.Bytes
	// bodies is what Bodies was at the beginning.
	bodies quantity.Bytes
	// stale is what Unread will come to when the rest of the bodies that were
	// not wanted to their ends has arrived, if it is still to come; lateAt is when it
	// grew, or anything came, last.
	stale  quantity.Bytes
	lateAt time.Duration
	hole   hole
}

// isIdle reports whether nothing is to come any more, be it for nothing.
func (s *session) isIdle() bool { return s.active == 0 && s.stale <= s.Unread() }

// closer ends the use of sessions, or keeps them for later.
type closer struct{ d *download }

// close closes a session, if it is completing requests when they have ended.
func (k *closer) close(c *connection, s *session, completing bool) {
	s.closed = true
	if !completing {
		s.Conn.Close()
	}
	k.settle(c, s)
}

// leave ends the use of a session at the end of a download. It is kept if it
// works, and if little that nobody wants is still on its way; not by a plan, which may have
// to let the radio sleep, and keep-alives would wake it.
func (k *closer) leave(c *connection, s *session, complete bool) {
	_, planned := k.d.Scheduler.(schedule.Planner)
	if planned || !complete || !k.spare(c, s) {
		k.close(c, s, false)
	}
}

// spare keeps a session that nobody needs now, if that works.
func (k *closer) spare(c *connection, s *session) bool {
	if k.d.Pool == nil || s != c.session || !c.usable(time.Since(k.d.start)) || !s.Usable() || s.stale-s.Unread() > mostKeptStale {
		return false
	}
	k.wasted(c, s)
	k.d.watchdog.close(s)
	k.d.Pool.put(c.link.Name, c.url, s.Conn)
	return true
}

// settle counts the wasted bytes of a closed session.
func (k *closer) settle(c *connection, s *session) {
	if !s.closed || s.active > 0 || k.d.asker.awaitsWhole(s) {
		return
	}
	c.completing = slices.DeleteFunc(c.completing, func(other *session) bool { return other == s })
	s.Conn.Close()
	k.wasted(c, s)
	k.d.watchdog.close(s)
}

// giveUpOn ends a session that completes requests; others will.
func (k *closer) giveUpOn(c *connection, s *session, reason string, now time.Duration) {
	c.completing = slices.DeleteFunc(c.completing, func(other *session) bool { return other == s })
	k.abandon(c, c.on(s), reason, now)
	k.close(c, s, false)
}

// wasted counts what a session received and nobody read, since it was told last.
func (k *closer) wasted(c *connection, s *session) {
	if late := s.Unread() - s.unread; late > 0 {
		s.unread += late
		c.link.Wasted += late
		k.d.record(time.Since(k.d.start), &rundir.Late{Link: c.link.Name, Bytes: int64(late)})
	}
}

// lose gives up a session that takes no more requests. What it has still to
// deliver may yet come. Nobody connects a further connection again.
func (k *closer) lose(c *connection, s *session) {
	if s != c.session {
		return
	}
	c.newest, c.leaving = nil, !c.isFirst()
	if s.active > 0 {
		s.draining = true
	} else {
		c.session = nil
		k.close(c, s, false)
	}
	c.wake()
}

// abandon gives up requests of a link; what they have not delivered is free
// again.
func (k *closer) abandon(c *connection, requests []*request, reason string, now time.Duration) {
	var bytes quantity.Bytes
	for _, r := range requests {
		left := k.d.fetcher.drop(c, r, now)
		k.d.fetcher.release(r, left)
		bytes += left.Length
	}
	if bytes > 0 {
		k.d.fetcher.failedOver(c, nil, bytes, reason, now)
	}
}

// clear gives up what a session owes. Of what may be the only answer the last byte stays: it goes on if the
// others get no other one.
func (k *closer) clear(c *connection, s *session, reason string, now time.Duration) {
	others := slices.DeleteFunc(c.on(s), k.d.fetcher.isOnly)
	if r := c.whole(); r != nil && r.session == s && k.d.fetcher.isOnly(r) {
		rest := ranges.Range{Offset: r.next() + 1, Length: r.left() - 1}
		k.d.fetcher.shrink(c, r, rest.Length)
		k.d.fetcher.release(r, rest)
	}
	k.abandon(c, others, reason, now)
}

// remove gives a further connection up. What it owed is free again. The connection of one
// that was only not needed is kept: an outage does it no harm, while TCP waits ever
// longer on those to which something was under way.
func (k *closer) remove(c *connection, now time.Duration) {
	if c.out != nil {
		return
	}
	spared := c.leaving && c.session != nil && c.session.isIdle() && k.spare(c, c.session)
	c.out = transfer.ErrGone
	k.abandon(c, slices.Clone(c.active), lost, now)
	c.abandonAttempt()
	for len(c.completing) > 0 {
		k.giveUpOn(c, c.completing[0], lost, now)
	}
	if s := c.session; s != nil {
		c.session = nil
		if !spared {
			k.close(c, s, false)
		}
	}
	isIt := func(other *connection) bool { return other == c }
	k.d.connections = slices.DeleteFunc(slices.Clone(k.d.connections), isIt)
	c.link.connections = slices.DeleteFunc(slices.Clone(c.link.connections), isIt)
	for x, other := range k.d.connections {
		other.index = x
	}
}
