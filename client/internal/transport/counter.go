package transport

import (
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Frames that carry bodies, and the flag that says that the first byte of one
// is the length of a padding at its end (RFC 9113 6.1). Frames by which a
// server ends the connection (6.8), or a stream (6.4), and the reason that
// calls what the client does wrong (7).
const (
	frameData     = 0
	frameReset    = 3
	frameGoAway   = 7
	flagPadded    = 8
	protocolError = 1
	goAwayLength  = 8 // Of a GOAWAY without words.
)

// dataCounter is a connection that reads along what a server sends over
// HTTP/2. It counts bodies: those that were cancelled go on arriving for a
// while, unseen by those who asked for them. And it notices goodbyes, which
// net/http does not tell from a limit of streams that is reached.
type dataCounter struct {
	net.Conn
	data    atomic.Int64
	backlog *backlog
	// goodbye says that the server takes no new requests.
	goodbye atomic.Bool
	// cause is why it is over.
	cause *endCause

	// Of the reader alone: the header of the current frame, how much of it is
	// here, what is left of the frame's content, and what of that is a body's.
	header  [frameHeaderLength]byte
	filled  int
	content quantity.Bytes
	body    quantity.Bytes
	// padded says that the next byte is the length of the padding.
	padded bool
	// reason is what came of the reason of a reset, of reasonLeft bytes more.
	reason     uint32
	reasonLeft int
	// words is the beginning of a GOAWAY, of which wordsLeft bytes are kept at most.
	words     []byte
	wordsLeft int
}

func newDataCounter(conn net.Conn, backlog *backlog, cause *endCause) *dataCounter {
	return &dataCounter{Conn: conn, backlog: backlog, cause: cause}
}

// Read reads, and counts.
func (c *dataCounter) Read(p []byte) (int, error) {
	c.backlog.await()
	n, err := c.Conn.Read(p)
	if err != nil {
		defer c.cause.failed(err) // After what came before it.
	}
	for rest := p[:n]; len(rest) > 0; {
		switch {
		case c.padded:
			c.padded = false
			c.content--
			c.body = max(0, c.body-1-quantity.Bytes(rest[0]))
			rest = rest[1:]
		case c.reasonLeft > 0:
			c.reasonLeft--
			c.content--
			c.reason = c.reason<<8 | uint32(rest[0])
			rest = rest[1:]
			if c.reasonLeft == 0 && c.reason == protocolError {
				// net/http sends nothing more on such a connection.
				c.cause.reset(c.reason)
				c.goodbye.Store(true)
			}
		case c.wordsLeft > 0:
			part := min(c.wordsLeft, len(rest))
			c.words = append(c.words, rest[:part]...)
			c.wordsLeft -= part
			c.content -= quantity.Bytes(part)
			rest = rest[part:]
			if c.wordsLeft == 0 {
				c.cause.goAway(c.words)
			}
		case c.content > 0:
			part := min(c.content, quantity.Bytes(len(rest)))
			if body := min(part, c.body); body > 0 {
				c.data.Add(int64(body))
				c.backlog.add(binary.BigEndian.Uint32(c.header[frameStreamOffset:])&streamIdentifierMask, body)
				c.body -= body
			}
			c.content -= part
			rest = rest[part:]
		default:
			taken := copy(c.header[c.filled:], rest)
			c.filled += taken
			rest = rest[taken:]
			if c.filled == frameHeaderLength {
				c.begin()
			}
		}
	}
	return n, err
}

// begin reads the header of a frame.
func (c *dataCounter) begin() {
	c.filled, c.content = 0, quantity.Bytes(binary.BigEndian.Uint32(c.header[:])>>8)
	switch c.header[frameTypeOffset] {
	case frameData:
		c.body = c.content
		c.padded = c.header[frameFlagsOffset]&flagPadded != 0 && c.content > 0
	case frameReset:
		c.reason, c.reasonLeft = 0, int(min(c.content, 4))
	case frameGoAway:
		c.words, c.wordsLeft = nil, int(min(c.content, goAwayLength+mostDebug))
		c.goodbye.Store(true)
	}
}

// Close closes the connection.
func (c *dataCounter) Close() error {
	c.backlog.close()
	return c.Conn.Close()
}
