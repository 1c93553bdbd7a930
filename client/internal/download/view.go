package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

// A requestView is what stealing and hedging may read, and do with requests.
type requestView struct{ d *download }

// all are the connections.
func (v requestView) all() []*connection { return v.d.connections }

// awaited is the first missing byte, if a program reads in order.
func (v requestView) awaited() (offset quantity.Bytes, isRead bool) {
	if v.d.window == nil {
		return 0, false
	}
	return v.d.payload.Missing().Offset, true
}

// waits is for how many seconds that program has enough bytes.
func (v requestView) waits() float64 { return v.d.waits }

// mayBeOnly reports whether the URL may have no other answer than the one to a request.
func (v requestView) mayBeOnly(r *request) bool { return v.d.fetcher.mayBeOnly(r) }

// request makes a connection send its next request.
func (v requestView) request(c *connection) { v.d.fetcher.request(c) }

// drop gives a request up and returns its unfinished range. shrink takes its last bytes off.
func (v requestView) drop(c *connection, r *request, now time.Duration) ranges.Range {
	return v.d.fetcher.drop(c, r, now)
}

func (v requestView) shrink(c *connection, r *request, bytes quantity.Bytes) {
	v.d.fetcher.shrink(c, r, bytes)
	v.d.fetcher.await(c)
}

// failedOver records that a connection lost work to another one.
func (v requestView) failedOver(from, to *connection, bytes quantity.Bytes, reason string, now time.Duration) {
	v.d.fetcher.failedOver(from, to, bytes, reason, now)
}
