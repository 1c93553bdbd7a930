// Package storm counts the connections that failing servers get from all code that dials, in simulated
// time.
package storm

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// rtt is the round trip time of all links.
const rtt = 20 * time.Millisecond

// Each uplink carries segment bytes of a connection at a time: 1.6 MB/s.
const (
	segment = 16 << 10
	uplink  = 10 * time.Millisecond
)

// network connects two links with a server.
type network struct {
	pacer *link.Pacer
	mu    sync.Mutex
	// accepted holds the times at which the server got connections.
	accepted []time.Time
	// ends are the server's ends of these connections.
	ends []peer
	// air carries datagrams, and stop ends the server that gets them.
	air  air
	stop func()
	// received and sent count the bytes that the client and the server have read.
	received, sent atomic.Int64
	// serve is how the server handles a connection.
	serve func(*end)
	open  map[*end]struct{}
	// boundless gives all writes room. An HTTP/2 upload that waits for room holds a mutex of net/http,
	// which would stop simulated time. The server's window limits what it sends.
	boundless bool
}

// peer is the server's end of a connection.
type peer interface {
	Close() error
	reset()
}

func newNetwork(serve func(*end)) *network {
	return &network{pacer: link.NewPacer(), serve: serve, open: map[*end]struct{}{}, stop: func() {}}
}

// links returns two links that lead to the server.
func (n *network) links() (links []transfer.Link) {
	for _, name := range []string{"wifi", "lte"} {
		links = append(links, transfer.Link{Name: name, Device: "lo", Dial: n.pacer.Dialer(name, n.dial)})
	}
	return links
}

func (n *network) dial(ctx context.Context, _ string) (link.Socket, error) {
	select {
	case <-time.After(rtt):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	up, down := newHalf(), newHalf()
	up.boundless = n.boundless
	server := &end{in: up, out: down, of: n, count: &n.sent}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accepted, n.ends = append(n.accepted, time.Now()), append(n.ends, server)
	n.open[server] = struct{}{}
	serve := n.serve
	go func() {
		defer server.Close()
		serve(server)
	}()
	return socket{&end{in: down, out: up, count: &n.received}}, nil
}

// become changes how the server handles connections. It resets the open ones.
func (n *network) become(serve func(*end)) {
	n.mu.Lock()
	n.serve = serve
	open := n.open
	n.open = map[*end]struct{}{}
	n.mu.Unlock()
	for one := range open {
		one.reset()
	}
}

// end ends all connections, and waits until everything in the background has ended.
func (n *network) end() {
	n.become(failures["closes at once"])
	n.stop()
	time.Sleep(2 * time.Minute)
}

// most returns the largest number of connections in a minute, from a time on.
func (n *network) most(from time.Time) (most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, begin := range n.accepted {
		count := 0
		for _, at := range n.accepted[i:] {
			if !begin.Before(from) && at.Sub(begin) < time.Minute {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

// half is one direction of a connection.
type half struct {
	mu      sync.Mutex
	changed *sync.Cond
	data    []byte
	err     error
	// came counts the bytes that were read.
	came uint64
	// boundless is that of the network.
	boundless bool
}

// room is how many bytes one direction holds.
const room = 1 << 18

func newHalf() *half {
	h := &half{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
	h.changed.Broadcast()
}

// end is one end of a connection. of is set at the server's end.
type end struct {
	in, out *half
	of      *network
	// count, if set, counts what is read.
	count *atomic.Int64
	// slow makes it read one byte a second.
	slow bool
	// ends is true during the last write, which crypto/tls announces by a deadline. That write
	// always has room: net/http holds a mutex meanwhile, which would stop simulated time.
	ends atomic.Bool
}

func (e *end) Read(p []byte) (int, error) {
	if e.of != nil {
		time.Sleep(uplink)
	}
	p = p[:min(len(p), segment)]
	if e.slow {
		time.Sleep(time.Second)
		p = p[:min(len(p), 1)]
	}
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	for len(e.in.data) == 0 && e.in.err == nil && len(p) > 0 {
		e.in.changed.Wait()
	}
	if len(e.in.data) == 0 && len(p) > 0 {
		return 0, e.in.err
	}
	n := copy(p, e.in.data)
	e.in.data = e.in.data[n:]
	e.in.came += uint64(n)
	if e.count != nil {
		e.count.Add(int64(n))
	}
	e.in.changed.Broadcast()
	return n, nil
}

func (e *end) Write(p []byte) (int, error) {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	for len(e.out.data) > room && e.out.err == nil && !e.out.boundless && !e.ends.Load() {
		e.out.changed.Wait()
	}
	if e.out.err != nil {
		return 0, syscall.EPIPE
	}
	e.out.data = append(e.out.data, p...)
	e.out.changed.Broadcast()
	return len(p), nil
}

func (e *end) Close() error {
	e.out.end(io.EOF)
	e.in.end(net.ErrClosed)
	if e.of != nil {
		e.of.mu.Lock()
		defer e.of.mu.Unlock()
		delete(e.of.open, e)
	}
	return nil
}

// reset ends the connection like a TCP reset.
func (e *end) reset() {
	e.in.mu.Lock()
	e.in.data = nil
	e.in.mu.Unlock()
	e.out.end(syscall.ECONNRESET)
	e.Close()
}

func (*end) LocalAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
func (*end) RemoteAddr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 443} }
func (*end) SetDeadline(time.Time) error     { return nil }
func (*end) SetReadDeadline(time.Time) error { return nil }
func (e *end) SetWriteDeadline(at time.Time) error {
	e.ends.Store(!at.IsZero())
	e.out.changed.Broadcast()
	return nil
}

// socket is the client's end.
type socket struct{ *end }

func (socket) Await(quantity.Bytes, quantity.Bytes) {}
func (socket) Owes(bool)                            {}
func (socket) Trial() *link.Trial                   { return nil }
func (socket) Ask() error                           { return nil }

// Answered returns that the server's kernel has acknowledged everything.
func (socket) Answered() (time.Duration, bool, error) { return 0, true, nil }

func (s socket) RoundTrip() (link.RoundTrip, error) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	return link.RoundTrip{Last: rtt, Min: rtt, Sending: rtt, Acknowledged: s.out.came}, s.out.err
}

// certificate is for the host "server" and valid in simulated time. authority contains its issuer,
// which is the certificate itself.
var certificate, authority = testkit.Certificate("server")
