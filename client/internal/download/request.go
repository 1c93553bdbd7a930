package download

import (
	"context"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// request is a request for a range, or for the whole resource in a race. Both engines use it. The engine of published
// algorithms takes no bytes from a request, and duplicates none.
type request struct {
	ranges.Range
	id      int
	session *session
	// limit is the end of the bytes that are still wanted: other connections may have taken the rest.
	limit    quantity.Bytes
	received quantity.Bytes
	wasted   quantity.Bytes
	// race is that of a request for the whole resource, of which so many bytes were used: written.
	race   *race
	used   quantity.Bytes
	issued time.Duration
	// first is when the first byte arrived.
	first time.Duration
	// heard is how many bytes the session had received when the request was sent, and before
	// how many bytes of earlier requests it had still to bring then.
	heard, before quantity.Bytes
	// alone says that no other request of the connection was in flight when it was sent.
	alone bool
	// dropped says that the engine gave the request up.
	dropped bool
	// isWhole says that the request asks for the file to its end. isHeld says that the engine
	// does not read its last wanted byte until it knows whether the URL works more than once.
	// more receives when that is known, or when limit grows.
	isWhole, isHeld bool
	more            chan struct{}
	// duplicate is a request on another connection for the rest of this one. The duplicate has
	// isDuplicate, and its field duplicate is the first request.
	duplicate   *request
	isDuplicate bool
	// hedged says that the first byte of one of both ends the other one.
	hedged bool
	// isSplit says that only the first needed bytes of this request count: the duplicate brings the rest.
	isSplit bool
	needed  quantity.Bytes
	// cancel ends the request, once the loop has sent it.
	cancel context.CancelFunc
	// proof lets its new bytes prove that the connection works (transport.Proof).
	proof *transport.Proof
}

// complete reports whether all wanted bytes have been read. The last ones may still be written.
func (r *request) complete() bool { return !r.dropped && r.left() == 0 }

// goesOn reports whether wanted bytes are still to arrive.
func (r *request) goesOn() bool { return !r.dropped && r.left() != 0 }

// isAwaited reports whether the engine waits for bytes of the request.
func (r *request) isAwaited() bool { return !r.isHeld }

// next is the offset of the next byte that is to arrive.
func (r *request) next() quantity.Bytes { return r.Offset + r.received }

// left is how many wanted bytes have not arrived.
func (r *request) left() quantity.Bytes { return r.limit - r.next() }

// coming is how many bytes the session has received since the request was sent, and how many it
// has still to bring until the request is complete. TLS delivers a whole record at a time: a
// slow link may have brought nearly all of a record before the engine can read any of it.
func (r *request) coming() (came, due quantity.Bytes) {
	came = r.session.Received() - r.heard
	due = r.before + r.wanted() - came
	return came, min(max(due, r.left()-recordSize, 0), r.before+r.left())
}

// rest is the range that has not arrived.
func (r *request) rest() ranges.Range { return ranges.Range{Offset: r.next(), Length: r.left()} }

// recordSize is the largest record of TLS in bytes (RFC 8446 5.1).
const recordSize = 1 << 14

// wanted is how many bytes of the request are wanted, arrived ones included.
func (r *request) wanted() quantity.Bytes { return r.limit - r.Offset }

// tail is how many bytes may arrive that are not wanted any more.
func (r *request) tail() quantity.Bytes { return min(r.End()-r.limit, maxStale) }

// tail is how many unwanted bytes of a request may arrive. For the whole file that is what the link
// brings in the round trip until the server stops.
func (c *connection) tail(r *request, now time.Duration) quantity.Bytes {
	if r.isWhole {
		return min(r.tail(), quantity.Bytes(c.pace.Rate(now).Over(c.rtt.Last)))
	}
	return r.tail()
}

// arrival is bytes of a body that were read. Of these kept are wanted. isLast says that no more are wanted, and isCut
// that the answer goes on behind the wanted bytes.
type arrival struct {
	kept          int
	isLast, isCut bool
}

func (r *request) read(bytes int) (a arrival) {
	a.kept = int(min(quantity.Bytes(bytes), r.left()))
	r.received += quantity.Bytes(a.kept)
	r.wasted += quantity.Bytes(bytes - a.kept)
	a.isLast = r.left() == 0
	a.isCut = bytes > a.kept || a.isLast && r.limit < r.End()
	return a
}
