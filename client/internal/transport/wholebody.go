package transport

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// WholeBody is the body of a resource as a whole.
type WholeBody struct {
	io.ReadCloser
	// by is the connection whose end is that of the body; nil where a length
	// or the framing tells.
	by *http1Conn
}

func newWholeBody(response *http.Response, by net.Conn) *WholeBody {
	if IsFramed(response) {
		return &WholeBody{response.Body, nil}
	}
	conn, _ := by.(*http1Conn)
	return &WholeBody{response.Body, conn}
}

// IsFramed reports whether a length or the framing tells where the body ends,
// and not the end of the connection alone.
func IsFramed(response *http.Response) bool {
	return response.ProtoMajor > 1 || response.ContentLength >= 0 || len(response.TransferEncoding) > 0
}

// Unproven reports of a body that has ended whether it may have been cut:
// nothing told its length, and its connection ended without TLS's close_notify
// (RFC 9112 9.8).
func (b *WholeBody) Unproven() bool {
	if b.by == nil {
		return false
	}
	secure, ok := b.by.Socket.(*securedSocket)
	return !ok || secure.below.Ended()
}

// EndNoticer is a connection below TLS that notices its end. TLS that is told
// of the end by close_notify reads no further; crypto/tls takes an end without
// that for one as well.
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

// Ended reports whether the other end has closed the connection, and that was
// read.
func (c *EndNoticer) Ended() bool { return c.ended.Load() }

// NetConn is the connection itself.
func (c *EndNoticer) NetConn() net.Conn { return c.Conn }
