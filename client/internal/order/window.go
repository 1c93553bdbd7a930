// Package order makes a stream of ranges that arrive in any order, with
// bounded memory.
package order

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// Window is a download.Window: what may be requested is what there is room
// for, from the next byte that the reader needs on. A reader that stops
// thereby stops the download.
type Window struct {
	size  int64
	grown chan struct{}
	// ended is closed after Commit or Abort.
	ended chan struct{}

	mu sync.Mutex
	// arrival wakes the reader; it has room for one notice.
	arrival chan struct{}
	part    ranges.Range
	// ring holds the byte at offset o in ring[o % len(ring)].
	ring []byte
	// next is the offset of the next byte for the reader.
	next int64
	// limit is the offset before which bytes may be requested.
	limit int64
	// arrived are the bytes from next on that are in the ring.
	arrived *ranges.Set
	err     error
}

// growth is the part of the window that must be free before more may be
// requested: a request for every few bytes that a reader takes would cost
// more than it carries.
const growth = 8

// NewWindow returns a window with room for size bytes, at least 64.
func NewWindow(size int64) *Window {
	return &Window{
		size:    size,
		grown:   make(chan struct{}, 1),
		ended:   make(chan struct{}),
		arrival: make(chan struct{}, 1),
		arrived: ranges.NewSet(),
	}
}

// Size is the number of bytes for which there is room.
func (w *Window) Size() int64 { return w.size }

// Limit is the offset before which bytes may be requested.
func (w *Window) Limit() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit
}

// Grown receives after Limit has grown.
func (w *Window) Grown() <-chan struct{} { return w.grown }

// Begin makes room.
func (w *Window) Begin(_ transport.Resource, part ranges.Range) ([]ranges.Range, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part, w.next = part, part.Offset
	w.ring = make([]byte, min(w.size, part.Length))
	w.limit = w.next + int64(len(w.ring))
	return nil, nil
}

// WriteAt takes bytes before Limit. Those that it has had already it ignores,
// so that what is being read never changes.
func (w *Window) WriteAt(p []byte, offset int64) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	written := ranges.Range{Offset: offset, Length: int64(len(p))}
	if written.End() > w.next+int64(len(w.ring)) {
		return 0, fmt.Errorf("bytes %d-%d are beyond the window, which ends at %d", offset, written.End()-1, w.next+int64(len(w.ring)))
	}
	missing := ranges.NewSet(written)
	missing.Remove(ranges.Range{Offset: offset, Length: w.next - offset})
	for _, r := range w.arrived.Ranges() {
		missing.Remove(r)
	}
	for _, r := range missing.Ranges() {
		w.put(p[r.Offset-offset:r.End()-offset], r.Offset)
		w.arrived.Add(r)
	}
	if w.arrived.First().Offset == w.next {
		notify(w.arrival)
	}
	return len(p), nil
}

// put copies bytes into the ring.
func (w *Window) put(p []byte, offset int64) {
	at := offset % int64(len(w.ring))
	n := copy(w.ring[at:], p)
	copy(w.ring, p[n:])
}

// Commit says that all bytes are written.
func (w *Window) Commit() ([]byte, error) {
	w.end(nil)
	return nil, nil
}

// Abort says that no more bytes come.
func (w *Window) Abort(bool) error {
	w.end(errors.New("the download failed"))
	return nil
}

func (w *Window) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	close(w.ended)
}

// Copy writes all bytes to the writer in their order, as soon as they have
// arrived. It returns when all are written, the writer fails, ctx ends, or
// the download has failed and what arrived before is written.
func (w *Window) Copy(ctx context.Context, to io.Writer) (written int64, err error) {
	for {
		run, ended, err := w.nextRun()
		if len(run) == 0 {
			if ended {
				return written, err
			}
			select {
			case <-w.arrival:
			case <-w.ended:
			case <-ctx.Done():
				return written, context.Cause(ctx)
			}
			continue
		}
		n, err := to.Write(run)
		written += int64(n)
		if err != nil {
			return written, err
		}
		w.free(int64(n))
	}
}

// nextRun returns bytes that can be written now, as they are in the ring; if
// there are none, whether none will come, and why.
func (w *Window) nextRun() (run []byte, ended bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.arrived.First()
	if first.Length == 0 || first.Offset != w.next {
		select {
		case <-w.ended:
			return nil, true, w.err
		default:
			return nil, false, nil
		}
	}
	at := w.next % int64(len(w.ring))
	// What is being written is not free, so that it should not be much.
	n := min(first.Length, max(w.size/growth, 1), int64(len(w.ring))-at)
	return w.ring[at : at+n], false, nil
}

// free makes room after n bytes are written.
func (w *Window) free(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived.Remove(ranges.Range{Offset: w.next, Length: n})
	w.next += n
	limit := min(w.next+int64(len(w.ring)), w.part.End())
	if limit-w.limit >= w.size/growth || limit > w.limit && limit == w.part.End() {
		w.limit = limit
		notify(w.grown)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
