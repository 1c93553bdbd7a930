package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
)

const (
	// A server whose connections fail gets the next one at once, then one after
	// leastPause, then after twice as long each time, up to mostPause.
	leastPause = 500 * time.Millisecond
	mostPause  = 16 * time.Second
	// mostUnproven is how many connections to a server may be open of which nothing is
	// known, while none has been of use or one broke off: a download begins with six.
	// With the pauses that makes 16 in the first minute over a link.
	mostUnproven = 8
	// mostOfOne is how many connections one request may use up.
	mostOfOne = 2
	// mostUseless is how many may end in a row that were of no use for a while.
	mostUseless = 4
	// aWhile is how long a connection has to be of use.
	aWhile = 300 * time.Millisecond
	// mostServers is how many are remembered beyond what fails.
	mostServers = 1000
)

// Pacer bounds how often links connect to servers whose connections fail: whoever
// dials, and why. A server that has proved itself is not held up.
type Pacer struct {
	mu sync.Mutex
	// servers are few, and no map, whose seed would be a random number: what runtime
	// draws next would be another one, seen in virtual time.
	servers []*server
}

// place is a server as a link reaches it.
type place struct{ link, address string }

// server is what a Pacer knows of a place. All is locked by the Pacer.
type server struct {
	pacer *Pacer
	at    place
	// proved is how many open connections have been of use, and unproven how many not.
	proved, unproven int
	// shaken says that one which had been of use broke off since the last that proved
	// to be: others may follow at once.
	shaken bool
	// useless is how many have ended since, that were there for a while and of no use.
	useless int
	// problem is why the last connection failed; nil if the server works. tries is
	// how many were made since, and next when the next may be.
	problem error
	tries   int
	next    time.Time
	// replaced is when last one that was of use could be replaced at once.
	replaced time.Time
}

// PacedError says that it is too early to connect to a server that fails.
type PacedError struct {
	// After is when it may be tried again.
	After time.Duration
	place place
	cause error
}

func (e *PacedError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("%s has not answered %d connections yet", printable.Text(e.place.address), mostUnproven)
	}
	return fmt.Sprintf("connections to %s fail, the next one is made in %v: %v", printable.Text(e.place.address), e.After.Round(time.Millisecond), e.cause)
}

// Wait is when a connection may be tried again that failed with err; 0 if
// nothing but err speaks against it.
func Wait(err error) time.Duration {
	if err == nil {
		return 0
	}
	if paced := new(PacedError); errors.As(err, &paced) {
		return paced.After
	}
	return 0
}

// IsCrowded reports whether a connection was not made because there are enough of
// which nothing is known yet.
func IsCrowded(err error) bool {
	paced := new(PacedError)
	return err != nil && errors.As(err, &paced) && paced.cause == nil
}

// NewPacer returns one that knows no server.
func NewPacer() *Pacer { return &Pacer{} }

// Dialer makes a link's dial fail with a PacedError where it is too early.
func (p *Pacer) Dialer(link string, dial func(context.Context, string) (Socket, error)) func(context.Context, string) (Socket, error) {
	return func(ctx context.Context, address string) (Socket, error) {
		of := attemptOf(ctx)
		if err := of.again(); err != nil {
			return nil, err
		}
		server, err := p.admit(place{link, address})
		if err != nil {
			return nil, err
		}
		socket, err := dial(ctx, address)
		if err != nil {
			server.refused(err)
			return nil, err
		}
		trial := &Trial{server: server, since: time.Now()}
		of.dialled(trial)
		return newPacedSocket(socket, trial), nil
	}
}

// admit lets a connection be made, or says that it is too early.
func (p *Pacer) admit(at place) (*server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s := p.server(at, now)
	switch {
	case s.problem != nil && now.Before(s.next):
		return nil, &PacedError{s.next.Sub(now), at, s.problem}
	case s.problem != nil:
		s.next = now.Add(min(leastPause<<min(s.tries, 10), mostPause))
		s.tries++
	case s.isInDoubt() && s.unproven >= mostUnproven:
		return nil, &PacedError{leastPause, at, nil}
	}
	s.unproven++
	return s, nil
}

// server is what is known of a place; p.mu is held. Where there are many, those are
// dropped that nobody uses and that do not fail.
func (p *Pacer) server(at place, now time.Time) *server {
	for _, s := range p.servers {
		if s.at == at {
			return s
		}
	}
	if len(p.servers) >= mostServers {
		p.servers = slices.DeleteFunc(p.servers, func(s *server) bool { return s.unproven+s.proved == 0 && now.Sub(s.next) > mostPause })
	}
	s := &server{pacer: p, at: at}
	p.servers = append(p.servers, s)
	return s
}

// isInDoubt reports whether nothing tells that the server works.
func (s *server) isInDoubt() bool { return s.proved == 0 || s.shaken }

// refused takes note of a connection that was not made.
func (s *server) refused(err error) {
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	s.unproven--
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
		s.problem = err
	}
}

// Trial is whether a connection is of use. Without a Pacer it is nil, and nobody asks.
// All but its server is locked by the Pacer.
type Trial struct {
	server *server
	// user is whose request is on the connection.
	user           *Attempt
	since          time.Time
	proved, closed bool
}

// Prove says that something useful came. Once is all that a connection tells: the
// server may yet refuse others beside it.
func (t *Trial) Prove() {
	if t == nil {
		return
	}
	s := t.server
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	if t.proved {
		return
	}
	t.proved = true
	s.problem, s.tries, s.shaken, s.useless = nil, 0, false, 0
	if !t.closed {
		s.unproven--
		s.proved++
	}
}

// Fail says that nothing useful will come, though somebody waits for it.
func (t *Trial) Fail(err error) {
	if t == nil {
		return
	}
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	switch {
	case isOfLink(err):
	case t.proved:
		t.server.shaken = true
	default:
		t.server.problem = err
	}
}

// ended takes note that the server ends the connection, which it may well do with one
// that has not been of use for a while.
func (t *Trial) ended(err error) {
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	t.server.shaken = t.server.shaken || t.proved && !isOfLink(err)
}

// close takes note of the end. Another connection may take the place of one that was
// of use.
func (t *Trial) close() {
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	s := t.server
	switch {
	case t.closed:
	case t.proved:
		s.proved--
		if now := time.Now(); now.Sub(s.replaced) > mostPause {
			s.next, s.replaced = now, now
		}
	default:
		s.unproven--
		if time.Since(t.since) >= aWhile {
			s.useless++
		}
		if s.isInDoubt() && s.useless >= mostUseless && s.problem == nil {
			s.problem = fmt.Errorf("nothing came over %d connections", s.useless)
		}
	}
	t.closed = true
}

// isOfLink reports whether an error says that the link is down, which is looked after
// elsewhere, and nothing of the server.
func isOfLink(err error) bool {
	for _, one := range []error{
		context.Canceled, context.DeadlineExceeded, net.ErrClosed, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
		syscall.ENODEV, syscall.EADDRNOTAVAIL, syscall.ETIMEDOUT, syscall.ECONNABORTED,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return Wait(err) > 0
}

// pacedSocket is a connection that is on trial.
type pacedSocket struct {
	Socket
	trial *Trial
	// sender is the socket, if it is one.
	sender Sender
}

func newPacedSocket(socket Socket, trial *Trial) *pacedSocket {
	s := &pacedSocket{Socket: socket, trial: trial}
	// To ask for an interface Go may draw a random number. Its scheduler would go on
	// with the next one: seen in virtual time.
	if conn, ok := socket.(*Conn); ok {
		s.sender = conn
	} else {
		s.sender, _ = socket.(Sender)
	}
	return s
}

// Trial is the connection's.
func (s *pacedSocket) Trial() *Trial { return s.trial }

// NetConn is the connection below.
func (s *pacedSocket) NetConn() net.Conn { return s.Socket }

// Read notices the end of a connection that was of use.
func (s *pacedSocket) Read(p []byte) (int, error) {
	n, err := s.Socket.Read(p)
	if err != nil {
		s.trial.ended(err)
	}
	return n, err
}

// Close closes the connection.
func (s *pacedSocket) Close() error {
	s.trial.close()
	return s.Socket.Close()
}

// CloseWrite says that no more comes, if the socket can say that.
func (s *pacedSocket) CloseWrite() error {
	if half, ok := s.Socket.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// LimitUnsent, FillSegments and DiscardUnsent are of the socket, if it has them.
func (s *pacedSocket) LimitUnsent(bytes int) error {
	if s.sender == nil {
		return nil
	}
	return s.sender.LimitUnsent(bytes)
}

func (s *pacedSocket) FillSegments(always bool) error {
	if s.sender == nil {
		return nil
	}
	return s.sender.FillSegments(always)
}

func (s *pacedSocket) DiscardUnsent() error {
	if s.sender == nil {
		return nil
	}
	return s.sender.DiscardUnsent()
}
