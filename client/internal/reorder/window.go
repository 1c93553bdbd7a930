// Package reorder turns ranges that arrive in any order into a stream, with limited memory.
package reorder

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// Window is a download.Window and an io.Reader. Only bytes for which it has room may be requested,
// from the reader's next byte on. So a reader that stops also stops the download.
type Window struct {
	size  quantity.Bytes
	grown chan struct{}
	// ended is closed by Commit or Abort, which set err.
	ended chan struct{}
	err   error

	mu sync.Mutex
	// arrival wakes the reader. It holds one notice.
	arrival chan struct{}
	part    ranges.Range
	// ring holds the byte at offset o in ring[o % len(ring)].
	ring []byte
	// next is the offset of the reader's next byte.
	next quantity.Bytes
	// limit is the offset before which bytes may be requested.
	limit quantity.Bytes
	// arrived holds the bytes in the ring from next on.
	arrived *ranges.Set
}

// growth divides the window: so much of it must become free before the limit grows. A request for
// every few bytes that a reader takes would cost more than it carries.
const growth = 8

// NewWindow returns a window for size bytes.
func NewWindow(size quantity.Bytes) *Window {
	return &Window{
		size:    size,
		grown:   make(chan struct{}, 1),
		ended:   make(chan struct{}),
		arrival: make(chan struct{}, 1),
		arrived: ranges.NewSet(),
	}
}

// Size returns the number of bytes for which there is room.
func (w *Window) Size() quantity.Bytes { return w.size }

// Limit returns the offset before which bytes may be requested.
func (w *Window) Limit() quantity.Bytes {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit
}

// Grown returns a channel that receives after Limit has grown.
func (w *Window) Grown() <-chan struct{} { return w.grown }

// Begin allocates the ring.
func (w *Window) Begin(_ transport.Resource, part ranges.Range) ([]ranges.Range, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if part.Length < 0 { // The length is unknown.
		part.Length = math.MaxInt64 - part.Offset
	}
	w.part, w.next = part, part.Offset
	w.ring = make([]byte, min(w.size, part.Length))
	w.limit = w.next + quantity.Bytes(len(w.ring))
	return nil, nil
}

// WriteAt stores bytes before Limit. It ignores bytes that it has, so that bytes do not change
// while they are read.
func (w *Window) WriteAt(p []byte, at int64) (int, error) {
	offset := quantity.Bytes(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	written := ranges.Range{Offset: offset, Length: quantity.Bytes(len(p))}
	if written.End() > w.next+quantity.Bytes(len(w.ring)) {
		return 0, fmt.Errorf("bytes %d-%d are beyond the window, which ends at %d", offset, written.End()-1, w.next+quantity.Bytes(len(w.ring)))
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
func (w *Window) put(p []byte, offset quantity.Bytes) {
	at := offset % quantity.Bytes(len(w.ring))
	n := copy(w.ring[at:], p)
	copy(w.ring, p[n:])
}

// Commit tells that all bytes are written.
func (w *Window) Commit() ([]byte, error) {
	w.end(io.EOF)
	return nil, nil
}

// Abort tells that no more bytes will arrive.
func (w *Window) Abort(bool) error {
	w.end(ErrFailed)
	return nil
}

// ErrFailed means that the download ended before its last byte.
var ErrFailed = errors.New("the download failed")

func (w *Window) end(err error) {
	w.err = err
	close(w.ended)
}

// Read returns the next bytes in order as soon as they have arrived. After the last byte it
// returns io.EOF, or an error if the download failed.
func (w *Window) Read(p []byte) (int, error) {
	for {
		if n := w.take(p); n > 0 {
			return n, nil
		}
		select {
		case <-w.arrival:
			continue
		case <-w.ended:
		}
		// All bytes had arrived before the end.
		if n := w.take(p); n > 0 {
			return n, nil
		}
		return 0, w.err
	}
}

// take copies the next bytes that have arrived, and frees their room.
func (w *Window) take(p []byte) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.arrived.First()
	if first.Length == 0 || first.Offset != w.next {
		return 0
	}
	p = p[:min(quantity.Bytes(len(p)), first.Length)]
	at := w.next % quantity.Bytes(len(w.ring))
	n := copy(p, w.ring[at:])
	n += copy(p[n:], w.ring)
	w.arrived.Remove(ranges.Range{Offset: w.next, Length: quantity.Bytes(n)})
	w.next += quantity.Bytes(n)
	limit := min(w.next+quantity.Bytes(len(w.ring)), w.part.End())
	if limit-w.limit >= w.size/growth || limit > w.limit && limit == w.part.End() {
		w.limit = limit
		notify(w.grown)
	}
	return n
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
