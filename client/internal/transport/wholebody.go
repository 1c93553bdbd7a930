package transport

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/quantity"
)

// WholeBody is the body of a whole resource.
type WholeBody struct {
	io.ReadCloser
	// by is the connection whose end is the end of the body. It is nil if a length or the
	// framing tells the end.
	by *http1Conn
}

// newWholeBody returns the body of an answer that brings a whole resource of this size, -1 if unknown.
func newWholeBody(response *http.Response, size quantity.Bytes) *WholeBody {
	if size >= 0 {
		return &WholeBody{&exactBody{response.Body, size}, nil}
	}
	if IsFramed(response) {
		return &WholeBody{response.Body, nil}
	}
	conn, _ := response.Body.(*readBody).by.(*http1Conn)
	return &WholeBody{response.Body, conn}
}

// IsFramed reports whether a length or the framing tells the end of the body. Otherwise only
// the end of the connection does.
func IsFramed(response *http.Response) bool {
	return response.ProtoMajor > 1 || response.ContentLength >= 0 || len(response.TransferEncoding) > 0
}

// Unproven reports whether a body that has ended may be truncated: its length was unknown, and
// its connection ended without TLS's close_notify (RFC 9112 9.8).
func (b *WholeBody) Unproven() bool {
	if b.by == nil {
		return false
	}
	secure, ok := b.by.Socket.(*securedSocket)
	return !ok || secure.below.Ended()
}

// EndNoticer is a connection below TLS that notices its end. After a close_notify TLS reads
// no further. Without one crypto/tls reports the same io.EOF.
type EndNoticer struct {
	net.Conn
	ended atomic.Bool
}

func (c *EndNoticer) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		c.ended.Store(true)
	}
	return n, err
}

// Ended reports whether a read saw that the other end closed the connection.
func (c *EndNoticer) Ended() bool { return c.ended.Load() }

// NetConn returns the connection below.
func (c *EndNoticer) NetConn() net.Conn { return c.Conn }
