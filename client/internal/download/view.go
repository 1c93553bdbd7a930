package download

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/regularly"
)

// A view is what a policy may read of the download, and make it do. Policies call it with the
// download locked, except every.
type view interface {
	// now is the time since the download began.
	now() time.Duration
	// every calls do at regular times until ctx ends, with the download locked.
	every(ctx context.Context, period time.Duration, do func(now time.Duration))
	// isNew reports whether all bytes are missing.
	isNew() bool
	// isVerified reports whether a checksum will prove the whole.
	isVerified() bool
	// free is how many bytes the sink has room for and no request is for. isAllAssigned reports
	// whether there are none in the whole file.
	free() quantity.Bytes
	isAllAssigned() bool
	// take orders the next free bytes, at most so many.
	take(size quantity.Bytes) order
	// nextSize is how many bytes the scheduler gives the connection.
	nextSize(c *connection, now time.Duration) quantity.Bytes
	// overlapped reports whether enough of the newest request arrived for the next one.
	overlapped(c *connection, r *request) bool
	// assign gives idle connections work.
	assign()
	// failedOver records that a connection lost work to another one; nil if none has it yet.
	failedOver(from, to *connection, bytes quantity.Bytes, reason string, now time.Duration)
	// giveUp ends the download if no new bytes arrived for too long, and fail ends it at once.
	giveUp(now time.Duration)
	fail(c *connection, err error)
}

// A planView is what a plan may do besides: it chooses the links that are used.
type planView interface {
	view
	// all are the connections; each link has one.
	all() []*connection
	// isOver reports whether no more ranges are requested.
	isOver() bool
	// progress is the part of the file to download, how many of its bytes are free within the
	// sink's room and in all, and the first missing byte. isKnown says whether these are known.
	progress() (part ranges.Range, free, left, missing quantity.Bytes, isKnown bool)
	// setWaits sets for how many seconds the reader has enough bytes.
	setWaits(seconds float64)
	// request makes the connection send its next request.
	request(c *connection)
	// release makes an assigned range free. drop gives a request up and returns its unfinished
	// range. forsake gives up all requests of a connection.
	release(r ranges.Range)
	drop(c *connection, r *request, now time.Duration) ranges.Range
	forsake(c *connection, now time.Duration)
	// disconnect closes the connection's session.
	disconnect(c *connection)
}

// A requestView is what stealing and hedging may read, and do with requests.
type requestView interface {
	// all are the connections.
	all() []*connection
	// awaited is the first missing byte, if a program reads in order. waits is for how many
	// seconds that program has enough bytes.
	awaited() (offset quantity.Bytes, isRead bool)
	waits() float64
	// mayBeOnly reports whether the URL may have no other answer than the one to a request.
	mayBeOnly(r *request) bool
	// request makes a connection send its next request.
	request(c *connection)
	// drop gives a request up and returns its unfinished range. shrink takes its last bytes off.
	drop(c *connection, r *request, now time.Duration) ranges.Range
	shrink(c *connection, r *request, bytes quantity.Bytes)
	// failedOver records that a connection lost work to another one.
	failedOver(from, to *connection, bytes quantity.Bytes, reason string, now time.Duration)
}

// fullView implements view and planView.
type fullView struct{ d *download }

// fullRequestView implements requestView.
type fullRequestView struct{ fullView }

func (v fullRequestView) awaited() (offset quantity.Bytes, isRead bool) {
	if v.d.window == nil {
		return 0, false
	}
	return v.d.payload.Missing().Offset, true
}

func (v fullRequestView) mayBeOnly(r *request) bool { return v.d.fetcher.mayBeOnly(r) }

func (v fullRequestView) waits() float64 { return v.d.waits }

func (v fullRequestView) shrink(c *connection, r *request, bytes quantity.Bytes) {
	v.d.fetcher.shrink(c, r, bytes)
	v.d.fetcher.await(c)
}

func (v fullView) now() time.Duration { return time.Since(v.d.start) }

func (v fullView) every(ctx context.Context, period time.Duration, do func(now time.Duration)) {
	v.d.wg.Go(func() {
		regularly.Do(ctx, period, func() {
			v.d.mu.Lock()
			defer v.d.mu.Unlock()
			do(v.now())
		})
	})
}

func (v fullView) isNew() bool { return v.d.asker.isNew() }

func (v fullView) isVerified() bool { return v.d.Verified }

func (v fullView) free() quantity.Bytes { return v.d.payload.Free(v.d.limit()) }

func (v fullView) isAllAssigned() bool {
	return v.d.payload != nil && v.d.payload.Free(v.d.part.End()) == 0
}

func (v fullView) take(size quantity.Bytes) order {
	r, _ := v.d.payload.Take(size, v.d.limit())
	return order{Range: r}
}

func (v fullView) nextSize(c *connection, now time.Duration) quantity.Bytes {
	return v.d.nextSize(c, now)
}

func (v fullView) overlapped(c *connection, r *request) bool { return v.d.fetcher.overlapped(c, r) }

func (v fullView) assign() { v.d.assign() }

func (v fullView) failedOver(from, to *connection, bytes quantity.Bytes, reason string, now time.Duration) {
	v.d.fetcher.failedOver(from, to, bytes, reason, now)
}

func (v fullView) giveUp(now time.Duration) { v.d.watchdog.giveUp(now) }

func (v fullView) fail(c *connection, err error) { v.d.fail(c, err) }

func (v fullView) all() []*connection { return v.d.connections }

func (v fullView) isOver() bool { return v.d.ctx.Err() != nil || v.d.race != nil }

func (v fullView) progress() (part ranges.Range, free, left, missing quantity.Bytes, isKnown bool) {
	if v.d.payload == nil {
		return part, 0, 0, 0, false
	}
	return v.d.part, v.free(), v.d.payload.Free(math.MaxInt64), v.d.payload.Missing().Offset, true
}

func (v fullView) setWaits(seconds float64) { v.d.waits = seconds }

func (v fullView) request(c *connection) { v.d.fetcher.request(c) }

func (v fullView) release(r ranges.Range) { v.d.payload.Release(r) }

func (v fullView) drop(c *connection, r *request, now time.Duration) ranges.Range {
	return v.d.fetcher.drop(c, r, now)
}

func (v fullView) forsake(c *connection, now time.Duration) {
	v.d.closer.abandon(c, slices.Clone(c.active), slow, now)
}

func (v fullView) disconnect(c *connection) {
	s := c.session
	c.session = nil
	v.d.closer.close(c, s, false)
}
