package download

import (
	"context"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// request is a range request.
type request struct {
	ranges.Range
	id      int
	session *session
	// limit is the end of what is still wanted: other links may have taken
	// over the rest.
	limit    quantity.Bytes
	received quantity.Bytes
	wasted   quantity.Bytes
	// used is how much of a resource that comes only as a whole was written.
	used   quantity.Bytes
	issued time.Duration
	// first is when the first bytes came.
	first time.Duration
	// heard is what the session had received when it was issued, and before what that
	// had to bring first.
	heard, before quantity.Bytes
	// alone says that the connection had nothing else to deliver when it was
	// issued.
	alone bool
	// dropped says that nothing more is wanted.
	dropped bool
	// isWhole says that the server was asked for the file to its end. Before limit it is held until the URL is known
	// to work again, or limit grows: more receives then.
	isWhole, isHeld bool
	more            chan struct{}
	// duplicate is a request on another connection for what is left of this one. Of the
	// duplicate, for which isDuplicate is true, it is the first request.
	duplicate   *request
	isDuplicate bool
	// hedged says that the first bytes of one of both end the other.
	hedged bool
	// surplus says that of what was received only the first needed bytes count:
	// the duplicate brings the rest.
	surplus bool
	needed  quantity.Bytes
	cancel  context.CancelFunc
	// written says that nothing of it is written any more.
	written func()
	// proof is told of its new bytes.
	proof *transport.Proof
}

// isAwaited reports whether bytes of the request are to be read.
func (r *request) isAwaited() bool { return !r.isHeld }

// next is the offset of the next byte that is to arrive.
func (r *request) next() quantity.Bytes { return r.Offset + r.received }

// left is what is still wanted and has not arrived.
func (r *request) left() quantity.Bytes { return r.limit - r.next() }

// coming is what the session has received since the request was sent, and what it
// has still to bring until that is complete. A body is read a record of TLS at a time,
// of which a slow link may have brought nearly all while nothing could be read.
func (r *request) coming() (came, due quantity.Bytes) {
	came = r.session.Received() - r.heard
	due = r.before + r.wanted() - came
	return came, min(max(due, r.left()-recordSize, 0), r.before+r.left())
}

// recordSize is how much of a body TLS holds back at most until all of it has come
// (RFC 8446 5.1), in bytes.
const recordSize = 1 << 14

// wanted is the number of bytes that are wanted of all of the request.
func (r *request) wanted() quantity.Bytes { return r.limit - r.Offset }

// tail is how much may arrive of what is not wanted any more.
func (r *request) tail() quantity.Bytes { return min(r.End()-r.limit, maxStale) }

// tail is that of a request; of one for the whole file what the link brings until the server knows.
func (c *connection) tail(r *request, now time.Duration) quantity.Bytes {
	if r.isWhole {
		return min(r.tail(), quantity.Bytes(c.pace.Rate(now).Over(c.rtt.Last)))
	}
	return r.tail()
}

// complete reports whether all that is wanted has arrived.
func (r *request) complete() bool { return !r.dropped && r.left() == 0 }
