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

// http1Connections is how many connections of a link carry HTTP/1.1 at a
// time. Each carries one request, and the next request of a link begins while
// one is under way, at times two.
const http1Connections = 3

// mostWait is how long a request waits for a connection that may not be made yet.
// After that its session counts as broken, and whoever has others turns to them.
const mostWait = time.Second

// http1 is a link's HTTP/1.1 connections to one server.
type http1 struct {
	*http.Transport
	again  Dial
	config *tls.Config // nil without TLS
	// received counts all bytes that arrive.
	received *atomic.Int64

	mu sync.Mutex
	// unused is the first connection until it is in use.
	unused link.Socket
	// newest is the connection that was opened last.
	newest link.Socket
	open   map[link.Socket]struct{}
	// broken says that another connection could not be made.
	broken bool
	closed bool
	// ended is closed with the connections: net/http goes on to dial for requests that
	// nobody awaits any more.
	ended chan struct{}
}

// openHTTP1 uses a connection that is ready for HTTP/1.1, and opens more.
func openHTTP1(first link.Socket, again Dial, config *tls.Config, protocol string, received *atomic.Int64) *Conn {
	h := &http1{again: again, config: config, received: received, unused: first, newest: first, open: map[link.Socket]struct{}{}, ended: make(chan struct{})}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return h.dial(ctx) }
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	h.Transport = Bounded()
	h.DialContext, h.DialTLSContext = dial, dial
	h.Protocols = protocols
	h.MaxConnsPerHost, h.MaxIdleConnsPerHost = http1Connections, http1Connections
	return &Conn{http: h, usable: h.usable, received: received, Protocol: protocol, Socket: &http1Socket{first, h}}
}

// dial returns the first connection, and then new ones.
func (h *http1) dial(ctx context.Context) (net.Conn, error) {
	h.mu.Lock()
	socket := h.unused
	h.unused = nil
	h.mu.Unlock()
	if socket == nil {
		var err error
		if socket, err = h.another(ctx); err != nil {
			h.mu.Lock()
			// Nobody may want it any more, which says nothing of the server. Nor does it if
			// it is too early for one more.
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
	return &http1Conn{socket, h}, nil
}

func (h *http1) another(ctx context.Context) (link.Socket, error) {
	socket, err := h.again(ctx)
	for wait := link.Wait(err); wait > 0 && wait <= mostWait; wait = link.Wait(err) {
		// Meanwhile another connection may take the request.
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
	secure, err := secured(ctx, socket, h.config, h.received)
	if err != nil {
		return nil, err // As an interface a nil *securedSocket would not be nil.
	}
	return secure, nil
}

// usable reports whether requests can be sent, over new connections if need
// be.
func (h *http1) usable() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.closed && !h.broken
}

// trialOf is that of a connection.
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

// http1Conn is a connection of which http1 knows until it is closed.
type http1Conn struct {
	link.Socket
	of *http1
}

func (c *http1Conn) Read(p []byte) (int, error) {
	n, err := c.Socket.Read(p)
	if c.of.config == nil { // Else it is counted below TLS.
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
	net.Conn // the first one
	of       *http1
}

// Await does nothing: what is awaited comes on several connections.
func (s *http1Socket) Await(quantity.Bytes, quantity.Bytes) {}

// Owes is of all connections.
func (s *http1Socket) Owes(something bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for open := range s.of.open {
		open.Owes(something)
	}
}

// Trial is none: each connection has its own.
func (s *http1Socket) Trial() *link.Trial { return nil }

// Ask has all connections ask.
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

// Answered returns what is true of each connection. Without one nobody has the requests:
// they wait for a connection.
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

// RoundTrip tells of the newest connection. What arrived on all of them it does
// not know.
func (s *http1Socket) RoundTrip() (link.RoundTrip, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	rtt, err := s.of.newest.RoundTrip()
	rtt.Segments, rtt.OutOfOrder = 0, 0
	return rtt, err
}

// securedSocket is TLS on a socket.
type securedSocket struct {
	*tls.Conn
	raw   link.Socket
	below *EndNoticer
}

// Await does nothing: see http1Socket.
func (s *securedSocket) Await(quantity.Bytes, quantity.Bytes) {}

// Owes is the socket's.
func (s *securedSocket) Owes(something bool) { s.raw.Owes(something) }

// Trial is the socket's.
func (s *securedSocket) Trial() *link.Trial { return s.raw.Trial() }

// Ask is the socket's.
func (s *securedSocket) Ask() error { return s.raw.Ask() }

// Answered is the socket's.
func (s *securedSocket) Answered() (time.Duration, bool, error) { return s.raw.Answered() }

// RoundTrip is the socket's.
func (s *securedSocket) RoundTrip() (link.RoundTrip, error) { return s.raw.RoundTrip() }
