package transport

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
)

// http1Connections is the number of HTTP/1.1 connections of a link. Each carries one request
// at a time. A link has up to two further requests while one is in flight.
const http1Connections = 3

// mostWait is the longest wait of a request for a connection that backs off. After it the
// session counts as broken, and the request can use another session.
const mostWait = time.Second

// http1 holds a link's HTTP/1.1 connections to one server.
type http1 struct {
	*http.Transport
	again  Dial
	config *tls.Config // nil without TLS
	hellos *Hellos
	// received counts all bytes that arrive.
	received *atomic.Int64

	mu sync.Mutex
	// unused is the first connection until its first use.
	unused link.Socket
	// newest is the connection that was opened last.
	newest link.Socket
	open   map[link.Socket]struct{}
	// broken is true if a further connection could not be made.
	broken bool
	closed bool
	// ended is closed by Close. net/http goes on to dial for requests that have ended.
	ended chan struct{}
}

// openHTTP1 uses a connection that is ready for HTTP/1.1, and opens further ones.
func openHTTP1(first link.Socket, again Dial, config *tls.Config, hellos *Hellos, protocol string, received *atomic.Int64) *Conn {
	h := &http1{again: again, config: config, hellos: hellos.orNew(), received: received, unused: first, newest: first, open: map[link.Socket]struct{}{}, ended: make(chan struct{})}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return h.dial(ctx) }
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	h.Transport = Bounded()
	h.DialContext, h.DialTLSContext = dial, dial
	h.Protocols = protocols
	h.MaxConnsPerHost, h.MaxIdleConnsPerHost = http1Connections, http1Connections
	return &Conn{http: h, usable: h.usable, received: received, hellos: hellos, Protocol: protocol, Socket: &http1Socket{first, h}}
}

// dial returns the first connection, and later new ones.
func (h *http1) dial(ctx context.Context) (net.Conn, error) {
	h.mu.Lock()
	socket := h.unused
	h.unused = nil
	h.mu.Unlock()
	if socket == nil {
		var err error
		if socket, err = h.another(ctx); err != nil {
			h.mu.Lock()
			// The session is not broken if the request was cancelled, or if this is only a
			// backoff while other connections are open.
			isEnd := link.Wait(err) == 0 || len(h.open) == 0
			h.broken = h.broken || ctx.Err() == nil && isEnd
			h.mu.Unlock()
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		socket.Close()
		return nil, net.ErrClosed
	}
	h.open[socket] = struct{}{}
	h.newest = socket
	return &http1Conn{Socket: socket, of: h}, nil
}

func (h *http1) another(ctx context.Context) (link.Socket, error) {
	socket, err := h.again(ctx)
	for wait := link.Wait(err); wait > 0 && wait <= mostWait; wait = link.Wait(err) {
		// Another connection may take the request meanwhile.
		select {
		case <-ctx.Done():
			return nil, err
		case <-h.ended:
			return nil, err
		case <-time.After(wait):
			socket, err = h.again(ctx)
		}
	}
	if err != nil || h.config == nil {
		return socket, err
	}
	secure, err := secured(ctx, socket, h.again, h.config, h.hellos, h.received)
	if err != nil {
		return nil, err // A nil *securedSocket in an interface would not be nil.
	}
	return secure, nil
}

// usable reports whether requests can be sent, perhaps over new connections.
func (h *http1) usable() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed && !h.broken
}

// trialOf returns the trial of a connection.
func trialOf(conn net.Conn) *link.Trial {
	if one, ok := conn.(*http1Conn); ok {
		return one.Trial()
	}
	return nil
}

// Close closes all connections.
func (h *http1) Close() error {
	h.mu.Lock()
	if !h.closed {
		close(h.ended)
	}
	h.closed = true
	open := slices.Collect(maps.Keys(h.open))
	if h.unused != nil {
		open = append(open, h.unused)
	}
	h.mu.Unlock()
	for _, socket := range open {
		socket.Close()
	}
	h.CloseIdleConnections()
	return nil
}

// http1Conn is a connection that http1 keeps in a list until it is closed.
type http1Conn struct {
	link.Socket
	of     *http1
	mender headMender
}

func (c *http1Conn) Read(p []byte) (int, error) { return c.mender.read(p, c.receive) }

func (c *http1Conn) receive(p []byte) (int, error) {
	n, err := c.Socket.Read(p)
	if c.of.config == nil { // With TLS, meteredConn counts.
		c.of.received.Add(int64(n))
	}
	return n, err
}

func (c *http1Conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Socket)
	c.of.mu.Unlock()
	return c.Socket.Close()
}

// http1Socket stands for all connections of an http1.
type http1Socket struct {
	net.Conn // The first one.
	of       *http1
}

// Await does nothing, because the bytes arrive on several connections.
func (s *http1Socket) Await(quantity.Bytes, quantity.Bytes) {}

// Owes is passed on to all connections.
func (s *http1Socket) Owes(something bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for open := range s.of.open {
		open.Owes(something)
	}
}

// Trial returns nil: each connection has its own trial.
func (s *http1Socket) Trial() *link.Trial { return nil }

// Ask asks over all connections.
func (s *http1Socket) Ask() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for open := range s.of.open {
		if err := open.Ask(); err != nil {
			return err
		}
	}
	return nil
}

// Answered returns the values that hold for each connection. Without an open connection all
// is false: the requests wait for one.
func (s *http1Socket) Answered() (ago time.Duration, all bool, err error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	all = len(s.of.open) > 0
	for open := range s.of.open {
		openAgo, openAll, err := open.Answered()
		if err != nil {
			return 0, false, err
		}
		ago, all = max(ago, openAgo), all && openAll
	}
	return ago, all, nil
}

// RoundTrip returns the times of the newest connection. It does not count the segments of
// all connections.
func (s *http1Socket) RoundTrip() (link.RoundTrip, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	rtt, err := s.of.newest.RoundTrip()
	rtt.Segments, rtt.OutOfOrder = 0, 0
	return rtt, err
}

// securedSocket is a TLS connection over a socket.
type securedSocket struct {
	*tls.Conn
	raw   link.Socket
	below *EndNoticer
}

// Await does nothing, like that of http1Socket.
func (s *securedSocket) Await(quantity.Bytes, quantity.Bytes) {}

// Owes is passed on to the socket.
func (s *securedSocket) Owes(something bool) { s.raw.Owes(something) }

// Trial returns the trial of the socket.
func (s *securedSocket) Trial() *link.Trial { return s.raw.Trial() }

// Ask is passed on to the socket.
func (s *securedSocket) Ask() error { return s.raw.Ask() }

// Answered is passed on to the socket.
func (s *securedSocket) Answered() (time.Duration, bool, error) { return s.raw.Answered() }

// RoundTrip is passed on to the socket.
func (s *securedSocket) RoundTrip() (link.RoundTrip, error) { return s.raw.RoundTrip() }
