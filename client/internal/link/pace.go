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
	// mostTries is how many connections in a row a server may get that does not work,
	// and after that one in each pauseBetween. Over two links that makes 40 in the first
	// minute, and 16 in each that follows.
	mostTries    = 12
	pauseBetween = 7500 * time.Millisecond
	// mostUnknown is for how long at most nobody asks again while no connection has failed:
	// one of those that are open may prove to be of use at any time.
	mostUnknown = 500 * time.Millisecond
	// mostOfOne is how many connections one request may use up.
	mostOfOne = 2
	// mostServers is how many are remembered beyond what fails.
	mostServers = 1000
)

// Pacer bounds how often links connect to servers that do not work: whoever dials, and
// why. A server works while a connection to it is open that has been of use, and none
// has failed since. One that does not has an allowance of connections, which those
// that prove to be of use do not count against.
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
	// proved is how many open connections have been of use.
	proved int
	// problem is why a connection failed; nil if one has been of use since.
	problem error
	// full is when the whole allowance is there: it is the generic cell rate algorithm
	// (ITU-T I.371, 2004, annex A), whose theoretical arrival time that is.
	full time.Time
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
		return fmt.Sprintf("%s has not answered %d connections yet", printable.Text(e.place.address), mostTries)
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
		server, counts, err := p.admit(place{link, address})
		if err != nil {
			return nil, err
		}
		socket, err := dial(ctx, address)
		if err != nil {
			server.refused(counts, err)
			return nil, err
		}
		trial := &Trial{server: server, counts: counts}
		of.dialled(trial)
		return newPacedSocket(socket, trial), nil
	}
}

// admit lets a connection be made, or says that it is too early. It reports whether
// the connection counts against the allowance.
func (p *Pacer) admit(at place) (s *server, counts bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s = p.server(at, now)
	if s.proved > 0 && s.problem == nil {
		return s, false, nil
	}
	full := now
	if s.full.After(now) {
		full = s.full
	}
	full = full.Add(pauseBetween)
	if early := full.Sub(now) - mostTries*pauseBetween; early > 0 {
		if s.problem == nil {
			early = min(early, mostUnknown)
		}
		return nil, false, &PacedError{early, at, s.problem}
	}
	s.full = full
	return s, true, nil
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
		p.servers = slices.DeleteFunc(p.servers, func(s *server) bool { return s.proved == 0 && !s.full.After(now) })
	}
	s := &server{pacer: p, at: at}
	p.servers = append(p.servers, s)
	return s
}

// refused takes note of a connection that was not made. It counts if the server has
// refused it.
func (s *server) refused(counted bool, err error) {
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		s.problem = err
	case counted:
		s.giveBack()
	}
}

// giveBack returns one connection to the allowance.
func (s *server) giveBack() { s.full = s.full.Add(-pauseBetween) }

// Trial is whether a connection is of use. Without a Pacer it is nil, and nobody asks.
// All but its server is locked by the Pacer.
type Trial struct {
	server *server
	// user is whose request is on the connection.
	user *Attempt
	// counts says that the connection counts against the allowance.
	counts, proved, closed bool
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
	t.proved, s.problem = true, nil
	if t.counts {
		s.giveBack()
	}
	if !t.closed {
		s.proved++
	}
}

// Fail says that nothing useful will come, though somebody waits for it.
func (t *Trial) Fail(err error) {
	if t == nil || isOfLink(err) {
		return
	}
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	t.server.problem = err
}

// ended takes note that the server ends the connection, which it may well do with one
// that has not been of use for a while.
func (t *Trial) ended(err error) {
	t.server.pacer.mu.Lock()
	proved := t.proved
	t.server.pacer.mu.Unlock()
	if proved {
		t.Fail(err)
	}
}

// close takes note of the end.
func (t *Trial) close() {
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	if t.proved && !t.closed {
		t.server.proved--
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
