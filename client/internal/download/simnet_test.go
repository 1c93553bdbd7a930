package download

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// simLink is a link in memory and fake time: a queue that empties at a rate, and a delay.
type simLink struct {
	// rate is that of the downlink.
	rate quantity.Rate
	rtt  time.Duration
	// afterDial, if set, replaces what Dial returns.
	afterDial func(link.Socket) (link.Socket, error)
	// cable, if set, can be cut.
	cable *cable
	// name is the client's address, as the server sees it.
	name string
}

// cable is what may happen to a simLink.
type cable struct {
	mu sync.Mutex
	// factor multiplies the rate; with 0 nothing passes and nobody connects.
	factor float64
	// changed is closed, and made anew, when the factor changes.
	changed chan struct{}
	conns   []*simConn
	dials   []time.Time
	// made are all connections that there were, and most is how many of them were open at a time.
	made []*simConn
	most int
}

func newCable() *cable { return &cable{factor: 1, changed: make(chan struct{})} }

// dialled is how often somebody connected, or tried to.
func (c *cable) dialled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.dials)
}

func (c *cable) set(factor float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.factor = factor
	close(c.changed)
	c.changed = make(chan struct{})
}

// now returns the factor, and a channel that is closed when it changes.
func (c *cable) now() (float64, <-chan struct{}) {
	if c == nil {
		return 1, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.factor, c.changed
}

// reset breaks all connections, as a RST does.
func (c *cable) reset() {
	for _, conn := range c.established() {
		conn.in.abort()
		conn.out.abort()
		conn.in.finish()
		conn.out.finish()
	}
}

// freeze lets nothing pass on the present connections for ever, as a middlebox does that forgot them.
func (c *cable) freeze() {
	for _, conn := range c.established() {
		close(conn.in.frozen)
	}
}

// open is how many connections the client has not closed; c.mu is held.
func (c *cable) open() (n int) {
	for _, conn := range c.made {
		select {
		case <-conn.in.aborted:
		default:
			n++
		}
	}
	return n
}

func (c *cable) established() []*simConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	conns := c.conns
	c.conns = nil
	return conns
}

// segment is the unit that a simLink carries, in bytes.
const segment = 4096

// queueLength is how many segments the downlink's queue holds: 512 KiB.
const queueLength = 128

// simNet is a server at the far end of simLinks.
type simNet struct {
	*testkit.Listener
	server *http.Server
	// start starts the server: at the first dial, so that tests can change it before.
	start func()
}

// newSimNet returns a network whose server answers with handler.
func newSimNet(handler http.Handler) *simNet {
	n := &simNet{
		Listener: testkit.NewListener(),
		server: &http.Server{
			Handler:   handler,
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
			ErrorLog:  stdlog.New(io.Discard, "", 0),
		},
	}
	n.start = sync.OnceFunc(func() { go n.server.ServeTLS(n, "", "") })
	return n
}

// stop ends the server and waits until what is under way on the links has noticed.
func (n *simNet) stop() {
	n.server.Close()
	time.Sleep(time.Minute)
}

// dial connects through l.
func (n *simNet) dial(l simLink) func(context.Context, string) (link.Socket, error) {
	return func(ctx context.Context, _ string) (link.Socket, error) {
		select {
		case <-time.After(l.rtt):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n.start()
		if l.cable != nil {
			l.cable.mu.Lock()
			l.cable.dials = append(l.cable.dials, time.Now())
			factor := l.cable.factor
			l.cable.mu.Unlock()
			if factor == 0 {
				return nil, errors.New("network is unreachable")
			}
		}
		down, up := newDirection(l.rate, l.rtt/2, l.cable), newDirection(8e9, l.rtt/2, nil)
		if !n.Offer(&simConn{in: up, out: down, peer: simAddr(l.name)}, ctx.Done()) {
			return nil, cmp.Or(ctx.Err(), errors.New("connection refused"))
		}
		conn := &simConn{in: down, out: up}
		if l.cable != nil {
			l.cable.mu.Lock()
			l.cable.conns = append(l.cable.conns, conn)
			l.cable.made = append(l.cable.made, conn)
			l.cable.most = max(l.cable.most, l.cable.open())
			l.cable.mu.Unlock()
		}
		var socket link.Socket = &simSocket{simConn: conn, rtt: l.rtt, cable: l.cable, answered: time.Now()}
		if l.afterDial != nil {
			return l.afterDial(socket)
		}
		return socket, nil
	}
}

// direction carries segments one way.
type direction struct {
	queue   chan []byte
	arrived chan []byte
	// finished is closed when the sender has sent all, aborted when the receiver wants no more.
	finished, aborted chan struct{}
	finish, abort     func()
	// frozen is closed when nothing passes any more.
	frozen chan struct{}
}

func newDirection(rate quantity.Rate, delay time.Duration, c *cable) *direction {
	d := &direction{
		queue:    make(chan []byte, queueLength),
		arrived:  make(chan []byte),
		finished: make(chan struct{}),
		aborted:  make(chan struct{}),
		frozen:   make(chan struct{}),
	}
	d.finish = sync.OnceFunc(func() { close(d.finished) })
	d.abort = sync.OnceFunc(func() { close(d.aborted) })
	type inTransit struct {
		data []byte
		at   time.Time
	}
	// The delay holds everything that is sent during it.
	line := make(chan inTransit, int(rate.Over(delay)/segment)+queueLength)
	go func() {
		defer close(line)
		free := time.Now()
		for {
			var data []byte
			select {
			case data = <-d.queue:
			case <-d.finished:
				select {
				case data = <-d.queue:
				default:
					return
				}
			}
			if now := time.Now(); free.Before(now) {
				free = now
			}
			for {
				factor, changed := c.now()
				if factor == 0 {
					select {
					case <-changed:
						free = time.Now()
						continue
					case <-d.aborted:
						return
					case <-d.frozen:
					}
				} else {
					free = free.Add(time.Duration(float64(len(data)) / (rate.BytesPerSecond() * factor) * 1e9))
				}
				break
			}
			select {
			case <-d.frozen:
			case <-time.After(time.Until(free)):
			case <-d.aborted:
				return
			}
			if d.isFrozen() { // Where both are ready, select chooses at random.
				<-d.aborted
				return
			}
			line <- inTransit{data, free.Add(delay)}
		}
	}()
	go func() {
		defer close(d.arrived)
		for t := range line {
			time.Sleep(time.Until(t.at))
			select {
			case d.arrived <- t.data:
			case <-d.aborted:
			}
		}
	}()
	return d
}

// isFrozen reports whether nothing passes any more.
func (d *direction) isFrozen() bool {
	select {
	case <-d.frozen:
		return true
	default:
		return false
	}
}

// simConn is one end of a connection through a simLink.
type simConn struct {
	in, out *direction
	unread  []byte
	peer    simAddr

	mu sync.Mutex
	// ended is closed when a read must end.
	ended chan struct{}
}

// passed is closed when the deadline of reads has passed.
func (c *simConn) passed() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = make(chan struct{})
	}
	return c.ended
}

// SetReadDeadline ends reads at once if the deadline has passed, as a server does that stops reading. A later one is none.
func (c *simConn) SetReadDeadline(t time.Time) error {
	ended := c.passed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() || time.Until(t) > 0 {
		c.ended = nil
		return nil
	}
	select {
	case <-ended:
	default:
		close(ended)
	}
	return nil
}

func (c *simConn) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		var ok bool
		select {
		case c.unread, ok = <-c.in.arrived:
			if !ok {
				return 0, io.EOF
			}
		case <-c.in.aborted:
			return 0, net.ErrClosed
		case <-c.passed():
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *simConn) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), segment)
		select {
		case c.out.queue <- append([]byte(nil), rest[:n]...):
		case <-c.out.finished:
			return 0, net.ErrClosed
		case <-c.out.aborted:
			return 0, io.ErrClosedPipe
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// Close delivers what was written, and refuses what arrives.
func (c *simConn) Close() error {
	c.in.abort()
	c.out.finish()
	return nil
}

func (*simConn) LocalAddr() net.Addr                { return simAddr("") }
func (c *simConn) RemoteAddr() net.Addr             { return c.peer }
func (*simConn) SetDeadline(time.Time) error        { return nil }
func (c *simConn) SetWriteDeadline(time.Time) error { return nil }

type simAddr string

func (simAddr) Network() string  { return "sim" }
func (a simAddr) String() string { return string(a) }

// simSocket is the client's end.
type simSocket struct {
	*simConn
	rtt   time.Duration
	cable *cable

	mu sync.Mutex
	// answered is when the server's kernel acknowledged last, and asking that it is asked.
	answered time.Time
	asking   bool
}

func (*simSocket) Await(quantity.Bytes, quantity.Bytes) {}
func (*simSocket) Owes(bool)                            {}
func (*simSocket) Trial() *link.Trial                   { return nil }

// Ask has TCP ask every second from now on.
func (s *simSocket) Ask() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking {
		return nil
	}
	s.asking = true
	first := time.Until(s.answered.Add(time.Second))
	go func() {
		for wait := time.After(first); ; wait = time.After(time.Second) {
			select {
			case <-s.in.aborted:
				return
			case <-s.in.finished:
				return
			case <-wait:
			}
			if s.isUp() {
				s.mu.Lock()
				s.answered = time.Now()
				s.mu.Unlock()
			}
		}
	}()
	return nil
}

// isUp reports whether anything passes.
func (s *simSocket) isUp() bool {
	factor, _ := s.cable.now()
	return factor > 0 && !s.in.isFrozen()
}

// Answered says that what was sent has arrived, as it has where the link is cut: only the downlink is.
func (s *simSocket) Answered() (time.Duration, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.answered), true, nil
}

func (s *simSocket) RoundTrip() (link.RoundTrip, error) {
	return link.RoundTrip{Last: s.rtt + time.Millisecond, Min: s.rtt}, nil
}

// refusing is an afterDial that fails as a device without a route does.
func refusing(s link.Socket) (link.Socket, error) {
	return nil, errors.Join(errors.New("network is unreachable"), s.Close())
}

// certificate is that of the hosts "server" and "mirror", valid in the fake year 2000, and authority is its own issuer.
var certificate, authority = testkit.Certificate("server", "mirror")
