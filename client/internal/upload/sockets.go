package upload

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
)

// sockets are the TCP connections of one connection.
type sockets struct {
	mu  sync.Mutex
	all []*socket
	// dialing counts the attempts to make another one.
	dialing atomic.Int32
	// waits is true if a write that fails waits for the answer. Over HTTP/2 the reader writes, too.
	waits atomic.Bool
}

// socket counts what is written.
type socket struct {
	link.Socket
	of           *sockets
	written      atomic.Int64
	acknowledged uint64
	// ended is closed when nothing more can be read.
	ended chan struct{}
	once  sync.Once
}

func newSocket(below link.Socket, of *sockets) *socket {
	return &socket{Socket: below, of: of, ended: make(chan struct{})}
}

// answerTime is how long the client reads an answer after a connection broke.
const answerTime = time.Second

// Write writes. If that fails over HTTP/1.1, it waits until all received bytes were read: the server may
// have answered before it closed the connection, and net/http drops the answer after an error.
func (s *socket) Write(p []byte) (int, error) {
	s.written.Add(int64(len(p)))
	n, err := s.Socket.Write(p)
	if err != nil && s.of.waits.Load() {
		select {
		case <-s.ended:
		case <-time.After(answerTime):
		}
	}
	return n, err
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Socket.Read(p)
	if err != nil {
		s.end()
	}
	return n, err
}

// SetWriteDeadline is what TLS does before the alert that closes a connection (crypto/tls, closeNotify).
// No answer is read after it. net/http holds a lock meanwhile, so Write must not wait.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.end()
	return s.Socket.SetWriteDeadline(t)
}

func (s *socket) Close() error {
	s.end()
	return s.Socket.Close()
}

func (s *socket) end() { s.once.Do(func() { close(s.ended) }) }

// look returns how many bytes got through since the last transfer.CheckInterval, and how many have still to.
func (s *sockets) look() (came, pending quantity.Bytes, rtt link.RoundTrip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(one *socket) bool {
		written := one.written.Load()
		told, err := one.RoundTrip()
		if err != nil {
			return true // The socket is closed.
		}
		came += quantity.Bytes(told.Acknowledged - one.acknowledged)
		pending += max(0, quantity.Bytes(written)-quantity.Bytes(told.Acknowledged))
		one.acknowledged, rtt = told.Acknowledged, told
		return false
	})
	return came, pending, rtt
}

// hurry makes the kernel send the written bytes at once: no more will follow to fill a segment.
func (s *sockets) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if bulk, ok := one.Socket.(link.Sender); ok {
			_ = bulk.FillSegments(false) // A failure means a closed connection.
		}
	}
}

// abort closes the sockets. The kernel sends no more of their bytes.
func (s *sockets) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if bulk, ok := one.Socket.(link.Sender); ok {
			_ = bulk.DiscardUnsent() // A failure means a closed connection.
		}
		one.Close()
	}
}
