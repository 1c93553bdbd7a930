package download

import (
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// mostCompleting is how many older sessions of a link may complete requests at a time. A server may say goodbye
// whenever it has got a request, and take any time to answer it.
const mostCompleting = 2

// mostSessions is how many sessions a link with one connection has at a time: mostCompleting older ones, the present
// one, and one that is being made. Each is one TCP connection, or http1Connections of the transport.
const mostSessions = mostCompleting + 2

// sessions is the most sessions of a link at a time. Only its first connection has older ones.
func (o Options) sessions() int {
	if o.Connections == nil {
		return mostSessions
	}
	return mostSessions + o.Connections.Most - 1
}

// session is one transport connection of a connection. The engine of published algorithms uses the fields above closed.
type session struct {
	*transport.Conn
	authority string
	// requests is how many requests were sent on it, and active how many are in flight.
	requests, active int
	// unread and bodies are what Unread and Bodies were when the download got the session.
	unread, bodies quantity.Bytes
	// draining says that the session takes no new requests.
	draining bool
	closed   bool
	// delivered says that new bytes arrived since the last failure of a request.
	delivered bool
	// since is when the session was made.
	since time.Duration
	// heard is how many bytes the session had received at heardAt.
	heard   quantity.Bytes
	heardAt time.Duration
	wait    wait
	// stale is the value that Unread will have when the unwanted ends of bodies have arrived.
	// lateAt is when stale grew, or bytes arrived, last.
	stale  quantity.Bytes
	lateAt time.Duration
	hole   hole
	// decision, end and owes are what the socket is told: how many bytes must arrive until the connection's next
	// decision, how many until all its requests have ended, and whether the server owes any.
	decision, end quantity.Bytes
	owes          bool
}

func newSession(conn *transport.Conn, u *url.URL) *session {
	return &session{Conn: conn, authority: u.Host, unread: conn.Unread(), bodies: conn.Bodies()}
}

// close closes a session: at once, or when the requests that it completes have ended.
func (d *download) close(c *connection, s *session, completing bool) {
	s.closed = true
	if !completing {
		d.do(closeConn{s.Conn})
	}
	d.settle(c, s)
}

// leave closes a session at the end of a download, or keeps it in the pool. It closes a session
// that has many unwanted bytes to come. It closes all sessions of a download with a plan:
// keep-alives would wake a radio that the plan lets sleep.
func (d *download) leave(c *connection, s *session, complete bool) {
	_, planned := d.Scheduler.(schedule.Planner)
	if planned || !complete || !d.keepSession(c, s) {
		d.close(c, s, false)
	}
}

// keepSession puts an idle session into the pool, if the session works.
func (d *download) keepSession(c *connection, s *session) bool {
	if d.Pool == nil || s != c.session || !c.usable(d.now) || !s.Usable() || s.stale-s.Unread() > maxStale {
		return false
	}
	d.recordWasted(&c.link.commonLink, s, d.now)
	d.countClosed(s)
	d.keepInPool(c, s)
	return true
}

// settle counts the wasted bytes of a session that was closed and has no requests left.
func (d *download) settle(c *connection, s *session) {
	if !s.closed || s.active > 0 || d.awaitsWhole(s) {
		return
	}
	c.completing = slices.DeleteFunc(c.completing, func(other *session) bool { return other == s })
	d.do(closeConn{s.Conn})
	d.recordWasted(&c.link.commonLink, s, d.now)
	d.countClosed(s)
}

// giveUpOn closes a session that completes requests. Their bytes are free again.
func (d *download) giveUpOn(c *connection, s *session, reason string, now time.Duration) {
	c.completing = slices.DeleteFunc(c.completing, func(other *session) bool { return other == s })
	d.abandon(c, c.on(s), reason, now)
	d.close(c, s, false)
}

// lose sends no more requests on a session. Its requests in flight may still complete. A link's
// first connection connects again; a further one leaves.
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
}

// abandon gives up requests. The bytes that they have not brought are free again.
func (d *download) abandon(c *connection, requests []*request, reason string, now time.Duration) {
	var bytes quantity.Bytes
	for _, r := range requests {
		left := d.drop(c, r, now)
		d.release(r, left)
		bytes += left.Length
	}
	if bytes > 0 {
		d.recordFailover(&c.link.commonLink, "", bytes, reason, now)
	}
}

// clear gives up the requests of a session, except one that may have the URL's only answer. That one
// keeps its last byte, so that it can go on if no other request is answered.
func (d *download) clear(c *connection, s *session, reason string, now time.Duration) {
	others := slices.DeleteFunc(c.on(s), d.isOnly)
	if r := c.whole(); r != nil && r.session == s && d.isOnly(r) {
		rest := ranges.Range{Offset: r.next() + 1, Length: r.left() - 1}
		c.shrink(r, rest.Length)
		d.release(r, rest)
	}
	d.abandon(c, others, reason, now)
}

// disconnect gives up all requests and sessions of a connection.
func (d *download) disconnect(c *connection, reason string, now time.Duration) {
	d.abandon(c, slices.Clone(c.active), reason, now)
	for len(c.completing) > 0 {
		d.giveUpOn(c, c.completing[0], reason, now)
	}
	if s := c.session; s != nil {
		c.session = nil
		d.close(c, s, false)
	}
}

// remove takes a further connection off its link. Its unfinished bytes are free again. The session of an idle one goes
// to the pool: an outage does not harm it, while TCP backs off on sessions with bytes in flight.
func (d *download) remove(c *connection, now time.Duration) {
	if c.out != nil {
		return
	}
	if c.leaving && c.session != nil && c.session.active == 0 && c.session.stale <= c.session.Unread() && d.keepSession(c, c.session) {
		c.session = nil
	}
	c.out = transfer.ErrGone
	d.abandonAttempt(c)
	d.disconnect(c, lost, now)
	isIt := func(other *connection) bool { return other == c }
	d.connections = slices.DeleteFunc(slices.Clone(d.connections), isIt)
	c.link.connections = slices.DeleteFunc(slices.Clone(c.link.connections), isIt)
	for x, other := range d.connections {
		other.index = x
	}
}
