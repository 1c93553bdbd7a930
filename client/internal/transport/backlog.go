package transport

import (
	"io"
	"net"
	"sync"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
)

// backlogLimit is the number of unread bytes of bodies above which a connection is
// not read any more.
const backlogLimit = 512 << 10

// backlog counts the bytes of bodies that arrived over HTTP/2 and were not read yet, by
// stream. net/http keeps these bytes in memory, up to the window of the stream. That
// window is large, so that a fast link with a long round trip is fully used. If bytes
// arrive faster than they are written, the connection is not read until the readers have
// caught up. Bytes of cancelled streams do not count: net/http drops them.
type backlog struct {
	mu sync.Mutex
	// changed wakes the reader of the connection when the backlog shrinks.
	changed *sync.Cond
	streams map[uint32]quantity.Bytes
	sum     quantity.Bytes
	held    bool
	closed  bool
}

func newBacklog() *backlog {
	b := &backlog{streams: map[uint32]quantity.Bytes{}}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// begin adds a stream with a reader.
func (b *backlog) begin(stream uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[stream] = 0
}

// add counts bytes that arrived, or bytes that were read if negative.
func (b *backlog) add(stream uint32, bytes quantity.Bytes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.streams[stream]; ok {
		b.streams[stream] += bytes
		b.grow(bytes)
	}
}

// end removes a stream whose reader is gone.
func (b *backlog) end(stream uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.grow(-b.streams[stream])
	delete(b.streams, stream)
}

func (b *backlog) grow(bytes quantity.Bytes) {
	b.sum += bytes
	if b.held && b.sum < backlogLimit {
		b.changed.Broadcast()
	}
}

// await waits until the backlog is below its limit.
func (b *backlog) await() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.sum >= backlogLimit && !b.closed {
		b.held = true
		b.changed.Wait()
	}
	b.held = false
}

// isHeld reports whether await is waiting.
func (b *backlog) isHeld() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// close ends all waiting.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

// reader is the reader of a body. Its stream is known once the request has been sent.
// The answer may arrive before the sender learns that.
type reader struct {
	backlog *backlog

	mu     sync.Mutex
	stream uint32
	// early counts the bytes that were read before the stream was known.
	early quantity.Bytes
	left  bool
}

// sent tells which stream carries the request.
func (r *reader) sent(stream uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stream = stream
	r.backlog.add(stream, -r.early)
	if r.left {
		r.backlog.end(stream)
	}
}

// read counts bytes that were read.
func (r *reader) read(bytes quantity.Bytes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream == connectionStream {
		r.early += bytes
		return
	}
	r.backlog.add(r.stream, -bytes)
}

// leave tells that nothing more will be read.
func (r *reader) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	r.backlog.end(r.stream)
}

// readBody is a body that counts what was read of it.
type readBody struct {
	// server is the address from which the body comes, by the connection, nil with HTTP/2.
	server net.Addr
	by     net.Conn
	io.ReadCloser
	conn   *Conn
	reader *reader // nil without HTTP/2
}

func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.conn.delivered.Add(int64(n))
	if b.reader != nil {
		b.reader.read(quantity.Bytes(n))
	}
	if err != nil && err != io.EOF {
		err = printable.Error(b.conn.explained(err))
	}
	return n, err
}

func (b *readBody) Close() error {
	if b.reader != nil {
		b.reader.leave()
	}
	return b.ReadCloser.Close()
}
