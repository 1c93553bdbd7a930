package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/transport"
)

// mostCompleting is how many older sessions of a link may complete requests at
// a time. A server may say goodbye whenever it has got a request, and take any
// time to answer it.
const mostCompleting = 2

// mostSessions is how many sessions a link has at a time: those, the present
// one, and one that is made. Each is one connection, or http1Connections of
// the transport.
const mostSessions = mostCompleting + 2

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
	// stale is what Unread will come to when the rest of the bodies that were
	// not wanted to their ends has arrived, if it is still to come; lateAt is when it
	// grew, or anything came, last.
	stale  quantity.Bytes
	lateAt time.Duration
	hole   hole
}

// isIdle reports whether nothing is to come any more, be it for nothing.
func (s *session) isIdle() bool { return s.active == 0 && s.stale <= s.Unread() }
