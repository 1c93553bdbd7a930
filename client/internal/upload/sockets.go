package upload

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
)

// sockets are the TCP connections of a connection.
type sockets struct {
	mu  sync.Mutex
	all []*socket
}

// socket counts what is written.
type socket struct {
	link.Socket
	written      atomic.Int64
	acknowledged uint64
}

func (s *socket) Write(p []byte) (int, error) {
	s.written.Add(int64(len(p)))
	return s.Socket.Write(p)
}

// look is what has come since the last transfer.CheckInterval, and what is still to come.
func (s *sockets) look() (came, pending quantity.Bytes, rtt link.RoundTrip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(one *socket) bool {
		written := one.written.Load()
		told, err := one.RoundTrip()
		if err != nil {
			return true // It is closed.
		}
		came += quantity.Bytes(told.Acknowledged - one.acknowledged)
		pending += max(0, quantity.Bytes(written)-quantity.Bytes(told.Acknowledged))
		one.acknowledged, rtt = told.Acknowledged, told
		return false
	})
	return came, pending, rtt
}

// hurry has what is written sent at once: nothing will follow that would fill a
// segment.
func (s *sockets) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if bulk, ok := one.Socket.(link.Sender); ok {
			_ = bulk.FillSegments(false) // A failure means a closed connection.
		}
	}
}

// abort closes them, and has the kernel send no more of what they have.
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
