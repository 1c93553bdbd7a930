package transport

import (
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"
)

// The layout of HTTP/2 frames (RFC 9113 3.4, 4.1, 6.9).
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

// The smallest credits that are passed on, in bytes, and the largest number of streams
// whose credit is held back.
const (
	streamCreditStep     = streamWindow / 4
	connectionCreditStep = connectionWindow / 4
	maxWithheldStreams   = 64
)

// creditSaver is a connection that holds HTTP/2 flow control credit back until a write is
// worth it.
//
// net/http returns credit for every few kilobytes that are read. For each batch of data
// that costs a TLS record, a system call, a segment and a wake-up of the server. The
// windows are much larger than the bytes in flight, so a quarter of a window at a time is
// soon enough. Other frames pass unchanged and in order.
type creditSaver struct {
	net.Conn

	// mu is held during a write.
	mu sync.Mutex
	// open is true if a header continues in the next frame. No other frame may precede it.
	open bool
	// skip counts the bytes to pass before the next frame begins.
	skip int
	// head holds the beginning of a frame that continues in the next write.
	head []byte
	// withheld holds the credit of each stream that is held back.
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

// pingFrame is a PING (RFC 9113 6.7). net/http ignores its answer.
var pingFrame = []byte{0, 0, 8, framePing, 0, 0, 0, 0, 0, 'l', 'i', 'n', 'k', 'l', 'a', 'b', '?'}

// ping sends a PING. It sends nothing during another write: TCP then has bytes to deliver,
// and their acknowledgement shows as much.
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

// Write passes all frames of p except credit that can wait. net/http holds a lock meanwhile.
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
		if content := rest[frameHeaderLength:]; rest[frameTypeOffset] == frameGoAway && len(content) >= goAwayLength {
			s.cause.broken(binary.BigEndian.Uint32(content[4:]))
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

// withhold keeps credit of a stream, and passes it on once it is large enough.
func (s *creditSaver) withhold(stream, credit uint32) {
	step := uint32(streamCreditStep)
	if stream == connectionStream {
		step = connectionCreditStep
	}
	s.withheld[stream] += credit
	if s.withheld[stream] >= step {
		s.release(stream)
	}
	// The end of a stream is not seen here. Credit for an ended stream is harmless, so
	// with many streams all of it is passed on.
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
