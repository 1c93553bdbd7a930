package socks

import (
	"bytes"
	"io"
	"net"
)

// Listener accepts clients that speak HTTP, and has those that speak SOCKS5
// served: the first byte tells them apart, since no method begins with it.
type Listener struct {
	net.Listener
	// Serve serves a client that speaks SOCKS5 until its connection ends; from is
	// what it says.
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

// conn is a client's connection as the HTTP server sees it: one that speaks
// SOCKS5 has ended without a request, as soon as it is served.
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
	if b[0] != version {
		return n, err
	}
	c.serve(c.TCPConn, io.MultiReader(bytes.NewReader(bytes.Clone(b[:n])), c.TCPConn))
	return 0, io.EOF
}
