package transport

import (
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"
)

// The layout of HTTP/2 frames (RFC 9113 3.4, 4.1 and 6.9).
const (
	prefaceLength         = 24
	frameHeaderLength     = 9
	frameTypeOffset       = 3
	frameFlagsOffset      = 4
	frameStreamOffset     = 5
	frameHeaders          = 1
	framePing             = 6
	frameWindowUpdate     = 8
	frameContinuation     = 9
	flagEndHeaders        = 4
	connectionStream      = 0
	streamIdentifierMask  = 1<<31 - 1
	windowIncrementOffset = frameHeaderLength
	windowIncrementMask   = 1<<31 - 1
	windowUpdateLength    = frameHeaderLength + 4
)

// Credit in bytes from which on it is passed on, and the number of streams
// for which it is held back.
const (
	streamCreditStep     = streamWindow / 4
	connectionCreditStep = connectionWindow / 4
	maxWithheldStreams   = 64
)

// creditSaver is a connection that holds HTTP/2 flow control credit back
// until it is worth a write.
//
// net/http returns credit for every few kilobytes that are read: a TLS
// record, a system call, a segment and a wake-up of the server for each batch
// of data. With windows much larger than what is under way, a quarter of a
// window at a time is soon enough. Other frames pass unchanged and in order.
type creditSaver struct {
	net.Conn

	// mu is held while something is written.
	mu sync.Mutex
	// open says that a header goes on in the next frame, which nothing may precede.
	open bool
	// skip is how many bytes pass before the next frame begins.
	skip int
	// head holds the beginning of a frame that came in several writes.
	head []byte
	// withheld is the credit held back for each stream.
	withheld map[uint32]uint32
	out      []byte

	backlog *backlog
	cause   *endCause
	// newest is the stream that was opened last.
	newest uint32
}

func newCreditSaver(conn net.Conn, backlog *backlog, cause *endCause) *creditSaver {
	return &creditSaver{Conn: conn, skip: prefaceLength, withheld: map[uint32]uint32{}, backlog: backlog, cause: cause}
}

// pingFrame is a PING (RFC 9113 6.7), whose answer net/http passes over.
var pingFrame = []byte{0, 0, 8, framePing, 0, 0, 0, 0, 0, 'l', 'i', 'n', 'k', 'l', 'a', 'b', '?'}

// ping sends a PING, unless a frame is being written: then TCP has something to
// deliver, which tells as much.
func (s *creditSaver) ping() error {
	if !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	if s.skip > 0 || s.open {
		return nil
	}
	_, err := s.Conn.Write(pingFrame)
	return err
}

// Write passes on all frames of p but credit that can wait. net/http writes under a
// lock.
func (s *creditSaver) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = s.out[:0]
	rest := p
	if len(s.head) > 0 {
		rest = append(s.head, p...)
		s.head = nil
	}
	for len(rest) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(rest))
			s.out = append(s.out, rest[:n]...)
			s.skip -= n
			rest = rest[n:]
			continue
		}
		if len(rest) < frameHeaderLength || rest[frameTypeOffset] == frameWindowUpdate && len(rest) < windowUpdateLength {
			s.head = append([]byte(nil), rest...)
			break
		}
		if goodbye := rest[frameHeaderLength:]; rest[frameTypeOffset] == frameGoAway && len(goodbye) >= goAwayLength {
			s.cause.broken(binary.BigEndian.Uint32(goodbye[4:]))
		}
		if rest[frameTypeOffset] == frameHeaders {
			s.newest = binary.BigEndian.Uint32(rest[frameStreamOffset:]) & streamIdentifierMask
			s.backlog.begin(s.newest)
		}
		switch rest[frameTypeOffset] {
		case frameHeaders, frameContinuation:
			s.open = rest[frameFlagsOffset]&flagEndHeaders == 0
		}
		if rest[frameTypeOffset] != frameWindowUpdate {
			s.skip = frameHeaderLength + int(binary.BigEndian.Uint32(rest)>>8)
			continue
		}
		s.withhold(
			binary.BigEndian.Uint32(rest[frameStreamOffset:])&streamIdentifierMask,
			binary.BigEndian.Uint32(rest[windowIncrementOffset:])&windowIncrementMask,
		)
		rest = rest[windowUpdateLength:]
	}
	if len(s.out) > 0 {
		if _, err := s.Conn.Write(s.out); err != nil {
			s.cause.failed(err)
			return 0, err
		}
	}
	return len(p), nil
}

// withhold keeps credit for a stream, and passes on what has become enough.
func (s *creditSaver) withhold(stream, credit uint32) {
	step := uint32(streamCreditStep)
	if stream == connectionStream {
		step = connectionCreditStep
	}
	s.withheld[stream] += credit
	if s.withheld[stream] >= step {
		s.release(stream)
	}
	// Streams end without a word here. Credit for one that has ended is
	// harmless, so that all can be released when there are many.
	if len(s.withheld) > maxWithheldStreams {
		for _, stream := range slices.Sorted(maps.Keys(s.withheld)) {
			s.release(stream)
		}
	}
}

func (s *creditSaver) release(stream uint32) {
	s.out = append(s.out, 0, 0, 4, frameWindowUpdate, 0)
	s.out = binary.BigEndian.AppendUint32(s.out, stream)
	s.out = binary.BigEndian.AppendUint32(s.out, s.withheld[stream])
	delete(s.withheld, stream)
}
