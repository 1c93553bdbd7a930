package transport

import (
	"encoding/binary"
	"net"
	"sync/atomic"
)

// frameData is the type of the frames that carry bodies (RFC 9113, 6.1).
const frameData = 0

// dataCounter is a connection that counts what a server sends of bodies over
// HTTP/2. Bodies that were cancelled go on arriving for a while, unseen by
// those who asked for them.
type dataCounter struct {
	net.Conn
	data atomic.Int64

	// Of the reader alone: the header of the current frame, how much of it is
	// here, and what is left of the frame's content.
	header  [frameHeaderLength]byte
	filled  int
	content int64
}

// Read reads, and counts.
func (c *dataCounter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if c.content > 0 {
			part := min(c.content, int64(len(rest)))
			if c.header[frameTypeOffset] == frameData {
				c.data.Add(part)
			}
			c.content -= part
			rest = rest[part:]
			continue
		}
		taken := copy(c.header[c.filled:], rest)
		c.filled += taken
		rest = rest[taken:]
		if c.filled == frameHeaderLength {
			c.filled, c.content = 0, int64(binary.BigEndian.Uint32(c.header[:])>>8)
		}
	}
	return n, err
}
