package socks

import (
	"bytes"
	"io"
	"net"
)

// SOCKS4's first byte, and its reply "request rejected or failed" (Ying-Da Lee, SOCKS: a protocol for TCP
// proxy across firewalls).
const (
	version4  = 4
	rejected4 = 91
)

// Listener accepts clients of HTTP and serves those of SOCKS5 itself. The first byte tells them
// apart: no HTTP method begins with the byte of SOCKS5. It refuses SOCKS4.
type Listener struct {
	net.Listener
	// Serve serves a SOCKS5 client until its connection ends. It reads from from.
	Serve func(client *net.TCPConn, from io.Reader)
}

// Accept waits for the next client.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if tcp, ok := accepted.(*net.TCPConn); ok {
		return &conn{TCPConn: tcp, serve: l.Serve}, err
	}
	return accepted, err
}

// conn is a client's connection as the HTTP server sees it. After a SOCKS5 client was served, the
// connection ends for the HTTP server without a request.
type conn struct {
	*net.TCPConn
	serve func(*net.TCPConn, io.Reader)
	heard bool
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.heard || n == 0 {
		return n, err
	}
	c.heard = true
	switch b[0] {
	case version:
	case version4:
		_, _ = c.Write([]byte{0, rejected4, 0, 0, 0, 0, 0, 0})
		return 0, io.EOF
	default:
		return n, err
	}
	c.serve(c.TCPConn, io.MultiReader(bytes.NewReader(bytes.Clone(b[:n])), c.TCPConn))
	return 0, io.EOF
}
