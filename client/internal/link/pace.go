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
	// mostTries is how many connections in a row a failing server may get. After these it gets
	// one each pauseBetween. Over two links that is 40 in the first minute, and 16 in each
	// later minute.
	mostTries    = 12
	pauseBetween = 7500 * time.Millisecond
	// mostUnknown limits the wait while no connection has failed: one of the open ones may
	// prove to work at any time.
	mostUnknown = 500 * time.Millisecond
	// mostOfOne is how many connections one request may use up.
	mostOfOne = 2
	// mostServers is how many servers are remembered besides those that fail.
	mostServers = 1000
)

// Pacer limits how often links connect to servers, for all requests. A server has an allowance of
// connections without an outcome. Connections that prove useful are given back to the allowance. The
// allowance is larger while a server works: open connections to it have proved useful, and none has
// failed since.
type Pacer struct {
	mu sync.Mutex
	// servers is no map: there are few servers, and a map needs a random seed. The runtime's
	// next random number would change, and with it runs in virtual time.
	servers []*server
}

// endpoint is a server as a link reaches it.
type endpoint struct{ link, address string }

// server holds what a Pacer knows of an endpoint. The Pacer's mutex guards it.
type server struct {
	pacer *Pacer
	at    endpoint
	// proved counts the open connections that have proved useful.
	proved int
	// problem is why a connection failed, nil if one has proved useful since.
	problem error
	// full is when the allowance is full again. It is the theoretical arrival time of the
	// generic cell rate algorithm (ITU-T I.371, 2004, annex A).
	full time.Time
}

// PacedError means that it is too early to connect to a failing server.
type PacedError struct {
	// After is the time until the next connection is allowed.
	After    time.Duration
	endpoint endpoint
	cause    error
}

func (e *PacedError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("%s has not answered %d connections yet", printable.Text(e.endpoint.address), mostTries)
	}
	return fmt.Sprintf("connections to %s fail, the next one is made in %v: %v", printable.Text(e.endpoint.address), e.After.Round(time.Millisecond), e.cause)
}

// Wait returns the time until a connection that failed with err may be tried again. It returns
// 0 if err is no PacedError.
func Wait(err error) time.Duration {
	if err == nil {
		return 0
	}
	if paced := new(PacedError); errors.As(err, &paced) {
		return paced.After
	}
	return 0
}

// IsCrowded reports whether a connection was not made because too many open ones have no
// outcome yet.
func IsCrowded(err error) bool {
	paced := new(PacedError)
	return err != nil && errors.As(err, &paced) && paced.cause == nil
}

// NewPacer returns a Pacer that knows no server.
func NewPacer() *Pacer { return &Pacer{} }

// Dialer returns a link's dial that fails with a PacedError if it is too early.
func (p *Pacer) Dialer(link string, dial func(context.Context, string) (Socket, error)) func(context.Context, string) (Socket, error) {
	return func(ctx context.Context, address string) (Socket, error) {
		of := attemptOf(ctx)
		if err := of.again(); err != nil {
			return nil, err
		}
		server, err := p.admit(endpoint{link, address})
		if err != nil {
			return nil, err
		}
		socket, err := dial(ctx, address)
		if err != nil {
			server.refused(err)
			return nil, err
		}
		trial := &Trial{server: server}
		trial.wanted, _ = ctx.Value(wantedKey{}).(wanted)
		of.dialled(trial)
		return newPacedSocket(socket, trial), nil
	}
}

// admit allows a connection, or returns an error if it is too early. The connection uses up a part
// of the allowance. While the server works, the allowance is at least the number of open connections that
// have proved useful, so that this number can double.
func (p *Pacer) admit(at endpoint) (*server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	s := p.server(at, now)
	full := now
	if s.full.After(now) {
		full = s.full
	}
	full = full.Add(pauseBetween)
	tries := mostTries
	if s.problem == nil {
		tries = max(tries, s.proved)
	}
	if early := full.Sub(now) - time.Duration(tries)*pauseBetween; early > 0 {
		if s.problem == nil {
			early = min(early, mostUnknown)
		}
		return nil, &PacedError{early, at, s.problem}
	}
	s.full = full
	return s, nil
}

// server returns what is known of an endpoint; p.mu is held. If there are many servers, it drops
// those that are unused and do not fail.
func (p *Pacer) server(at endpoint, now time.Time) *server {
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

// refused records a connection that was not made. It stays counted only if the server refused
// it.
func (s *server) refused(err error) {
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) {
		s.problem = err
	} else {
		s.giveBack()
	}
}

// giveBack returns one connection to the allowance.
func (s *server) giveBack() { s.full = s.full.Add(-pauseBetween) }

// Trial records whether a connection proves useful. Without a Pacer it is nil. The Pacer's
// mutex guards all fields except server.
type Trial struct {
	server *server
	// user is the request on the connection.
	user *Attempt
	// wanted is done once nobody wants the connection; without a context if that is not known.
	wanted wanted
	// left is true once the connection counts no longer, and released once a program uses it.
	proved, closed, left, released bool
}

type wantedKey struct{}

// wanted is a struct because Go may draw a random number for a conversion to an interface, and its scheduler
// would continue with the next one.
type wanted struct{ context.Context }

// WhileWanted returns a context whose connections do not count against their server if they end without an
// outcome after the context does.
func WhileWanted(ctx context.Context) context.Context {
	return context.WithValue(ctx, wantedKey{}, wanted{ctx})
}

// Prove tells that useful bytes have arrived. Only the first call counts: the server may still
// refuse other connections.
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
	if !t.left {
		s.giveBack()
	}
	if !t.closed {
		s.proved++
	}
}

// Release tells that the connection works, and that a program uses it from now on: its end says nothing
// about the server.
func (t *Trial) Release() {
	if t == nil {
		return
	}
	t.Prove()
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	t.released = true
}

// Leave tells that the user of the connection wants no more of it. That says nothing about the server.
func (t *Trial) Leave() {
	if t == nil {
		return
	}
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	t.leave()
}

func (t *Trial) leave() {
	if !t.proved && !t.left {
		t.left = true
		t.server.giveBack()
	}
}

// Fail tells that no useful bytes will arrive, though a request waits.
func (t *Trial) Fail(err error) {
	if t == nil || isOfLink(err) {
		return
	}
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	t.server.problem = err
}

// ended records that the server ended the connection. That is no failure if the connection has
// not proved useful yet, or is a program's.
func (t *Trial) ended(err error) {
	t.server.pacer.mu.Lock()
	isFailure := t.proved && !t.released
	t.server.pacer.mu.Unlock()
	if isFailure {
		t.Fail(err)
	}
}

// close records the end of the connection.
func (t *Trial) close() {
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	if t.proved && !t.closed {
		t.server.proved--
	}
	if t.wanted.Context != nil && t.wanted.Err() != nil {
		t.leave()
	}
	t.closed = true
}

// isOfLink reports whether an error means that the link is down. Then it says nothing about
// the server.
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

// pacedSocket is a connection with a Trial.
type pacedSocket struct {
	Socket
	trial *Trial
	// sender is the socket, if it is a Sender.
	sender Sender
}

func newPacedSocket(socket Socket, trial *Trial) *pacedSocket {
	s := &pacedSocket{Socket: socket, trial: trial}
	// For a conversion to an interface Go may draw a random number. Its scheduler would
	// continue with the next one, which changed runs in virtual time.
	if conn, ok := socket.(*Conn); ok {
		s.sender = conn
	} else {
		s.sender, _ = socket.(Sender)
	}
	return s
}

// Trial returns the trial of the connection.
func (s *pacedSocket) Trial() *Trial { return s.trial }

// NetConn returns the connection below.
func (s *pacedSocket) NetConn() net.Conn { return s.Socket }

// Read reads, and records the end of the connection.
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

// CloseWrite ends the sending, if the socket supports that.
func (s *pacedSocket) CloseWrite() error {
	if half, ok := s.Socket.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// LimitUnsent, FillSegments and DiscardUnsent are passed on to a Sender.
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
