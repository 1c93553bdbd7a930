package transport

import (
	"io"
	"net"
	"sync"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
)

// backlogLimit is how many bytes of bodies may wait for their readers, for
// each connection.
const backlogLimit = 512 << 10

// backlog is what arrived of bodies over HTTP/2 and was not read yet, by
// stream. net/http keeps that in memory, and takes as much as the stream's
// window allows, which is large so that a fast and long path is used. Where
// data come faster than they are written, the connection is not read on until
// the readers have caught up. What arrives of cancelled streams does not
// count: nobody reads it, and net/http drops it.
type backlog struct {
	mu sync.Mutex
	// changed wakes who waits for readers.
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

// begin says that the stream has a reader.
func (b *backlog) begin(stream uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[stream] = 0
}

// add says that bytes arrived, or were read if they are negative.
func (b *backlog) add(stream uint32, bytes quantity.Bytes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.streams[stream]; ok {
		b.streams[stream] += bytes
		b.grow(bytes)
	}
}

// end says that the stream has no reader any more.
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

// await waits until there is room for more.
func (b *backlog) await() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.sum >= backlogLimit && !b.closed {
		b.held = true
		b.changed.Wait()
	}
	b.held = false
}

// isHeld reports whether the connection is not read because of its readers.
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

// reader is who asked for a body. Its stream is known when the request has
// been sent, which the sender may notice after the answer has come.
type reader struct {
	backlog *backlog

	mu     sync.Mutex
	stream uint32
	// early is what was read while the stream was not known.
	early quantity.Bytes
	left  bool
}

// sent says which stream carries the request.
func (r *reader) sent(stream uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stream = stream
	r.backlog.add(stream, -r.early)
	if r.left {
		r.backlog.end(stream)
	}
}

// read says that bytes were read.
func (r *reader) read(bytes quantity.Bytes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream == connectionStream {
		r.early += bytes
		return
	}
	r.backlog.add(r.stream, -bytes)
}

// leave says that nothing more will be read.
func (r *reader) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	r.backlog.end(r.stream)
}

// readBody is a body whose reader takes account.
type readBody struct {
	// server is the address that the body comes from.
	server net.Addr
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
