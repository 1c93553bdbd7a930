// Package testkit holds what tests of several packages share: certificates, servers, a cable between network
// namespaces, and waiting.
package testkit

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"
	"testing"
)

// Accept starts a server on loopback, and returns its address. It handles each connection in a goroutine,
// over TLS if config is not nil, and then closes it. The end of the test ends the server.
func Accept(t *testing.T, config *tls.Config, handle func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if config != nil {
				conn = tls.Server(conn, config)
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// Listener is a listener in memory, for connections that Offer hands over.
type Listener struct {
	offered chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// NewListener returns a Listener.
func NewListener() *Listener {
	return &Listener{offered: make(chan net.Conn), closed: make(chan struct{})}
}

// Offer hands a connection over. It returns false if the listener or until is closed before.
func (l *Listener) Offer(conn net.Conn, until <-chan struct{}) bool {
	select {
	case l.offered <- conn:
		return true
	case <-l.closed:
	case <-until:
	}
	return false
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.offered:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Offer.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns no address.
func (*Listener) Addr() net.Addr { return &net.TCPAddr{} }

// Frame returns an HTTP/2 frame (RFC 9113 4.1).
func Frame(kind byte, stream uint32, content ...byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(content))<<8|uint32(kind))
	return append(binary.BigEndian.AppendUint32(append(head, 0), stream), content...)
}
