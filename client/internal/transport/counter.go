package transport

import (
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Types and flags of HTTP/2 frames. DATA carries bodies (RFC 9113 6.1); with flagPadded
// its first byte is the length of the padding at its end. GOAWAY ends the connection
// (6.8) and RST_STREAM a stream (6.4). protocolError blames the client (7).
const (
	frameData     = 0
	frameReset    = 3
	frameGoAway   = 7
	flagPadded    = 8
	protocolError = 1
	goAwayLength  = 8 // Of a GOAWAY without debug data.
)

// dataCounter is a connection that parses what a server sends over HTTP/2. It counts
// the bytes of bodies: bytes of cancelled requests go on arriving for a while, unseen by
// their readers. It also notices GOAWAY, because net/http reports a GOAWAY like a reached
// limit of streams.
type dataCounter struct {
	net.Conn
	data    atomic.Int64
	backlog *backlog
	// goingAway is true if the server takes no new requests.
	goingAway atomic.Bool
	// cause holds why the connection ended.
	cause *endCause

	// The remaining fields belong to the reader: the header of the current frame, how
	// much of it has arrived, the outstanding bytes of the frame, and how many of these
	// belong to a body.
	header  [frameHeaderLength]byte
	filled  int
	content quantity.Bytes
	body    quantity.Bytes
	// padded is true if the next byte is the length of the padding.
	padded bool
	// reason is the error code of a reset so far. reasonLeft of its bytes are missing.
	reason     uint32
	reasonLeft int
	// words is the beginning of a GOAWAY. At most wordsLeft further bytes are kept.
	words     []byte
	wordsLeft int
}

func newDataCounter(conn net.Conn, backlog *backlog, cause *endCause) *dataCounter {
	return &dataCounter{Conn: conn, backlog: backlog, cause: cause}
}

// Read reads, and parses what it reads.
func (c *dataCounter) Read(p []byte) (int, error) {
	c.backlog.await()
	n, err := c.Conn.Read(p)
	if err != nil {
		defer c.cause.failed(err) // After the frames before it.
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
				// net/http sends nothing more on this connection.
				c.cause.reset(c.reason)
				c.goingAway.Store(true)
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

// begin parses the header of a frame.
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
		c.goingAway.Store(true)
	}
}

// Close closes the connection, and ends the waiting for readers.
func (c *dataCounter) Close() error {
	c.backlog.close()
	return c.Conn.Close()
}
