package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// With the keys of ML-KEM a ClientHello is longer than one packet. Some boxes on the way reset the
// connection then, send an alert, or swallow the hello. They get a second hello without ML-KEM.

// classicCurves are the key exchanges of a short hello.
var classicCurves = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

// mostHellos limits how many addresses hellos remembers.
const mostHellos = 1000

// Hellos remembers which ClientHello gets through to servers' addresses, for all links of a program. It is
// no map: a map needs a random seed, and the next random number of Go's scheduler would change runs in
// virtual time.
type Hellos struct {
	// HTTP3, if set, lets connections speak HTTP/3.
	HTTP3 *HTTP3

	mu    sync.Mutex
	known []*helloState
}

// helloState is what is known of an address. The mutex of Hellos guards isShort, isHopeless and works.
type helloState struct {
	address string
	// isShort is true if the next hello is short, isHopeless if a short one did not get through either, and
	// works if a short one did.
	isShort, isHopeless, works bool
	// isProbed is true once a caller asks whether the server takes LegacyTLS. takes is what it takes, nil as
	// long as that is nothing.
	isProbed atomic.Bool
	takes    atomic.Pointer[string]
}

// orNew returns what is remembered, or nothing yet.
func (m *Hellos) orNew() *Hellos {
	if m == nil {
		return new(Hellos)
	}
	return m
}

// at returns what is known of an address.
func (m *Hellos) at(address string) *helloState {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.known {
		if one.address == address {
			return one
		}
	}
	if len(m.known) >= mostHellos {
		m.known = nil
	}
	added := &helloState{address: address}
	m.known = append(m.known, added)
	return added
}

// isShort reports whether the next hello to an address is short.
func (m *Hellos) isShort(of *helloState) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return of.isShort
}

// lost records that a hello did not get through. It reports whether a short one is worth a try.
func (m *Hellos) lost(of *helloState, short bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	of.isHopeless = !of.works && (of.isHopeless || short)
	of.isShort = !of.isHopeless
	return of.isShort && !short
}

// gotThrough records that a short hello got through.
func (m *Hellos) gotThrough(of *helloState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of.works = true
}

// handshake makes the TLS handshake on a connection. On failure it closes the connection.
func handshake(ctx context.Context, conn net.Conn, config *tls.Config, hellos *Hellos) (*tls.Conn, *EndNoticer, *HandshakeError) {
	state := hellos.at(conn.RemoteAddr().String())
	short := config.CurvePreferences == nil && hellos.isShort(state)
	if short {
		config = config.Clone()
		config.CurvePreferences = classicCurves
	}
	answer := &answerCounter{Conn: conn}
	below := &EndNoticer{Conn: answer}
	secure := tls.Client(below, config)
	err := secure.HandshakeContext(ctx)
	if err == nil && short {
		hellos.gotThrough(state)
	}
	if err == nil {
		return secure, below, nil
	}
	conn.Close()
	failure := &HandshakeError{err: err}
	if (short || config.CurvePreferences == nil) && answer.refusesHello(ctx, err) {
		failure.again = hellos.lost(state, short)
	}
	return nil, nil, failure
}

// answerCounter counts the bytes that arrive.
type answerCounter struct {
	net.Conn
	came atomic.Int64
}

func (c *answerCounter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.came.Add(int64(n))
	return n, err
}

// NetConn returns the connection below.
func (c *answerCounter) NetConn() net.Conn { return c.Conn }

// alertRecord is the length of an alert without encryption, in bytes.
const alertRecord = 7

// refusesHello reports whether a handshake failed before the server understood the hello: with an alert,
// the end of the connection or silence.
func (c *answerCounter) refusesHello(ctx context.Context, err error) bool {
	came := c.came.Load()
	switch {
	case ctx.Err() != nil:
		return came == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded)
	case came == 0:
		return true
	}
	return came <= alertRecord && slices.Contains([]string{
		"tls: error decoding message", "tls: illegal parameter", "tls: internal error",
		"tls: unexpected message", "tls: record overflow",
	}, alertText(err))
}

// alertText returns the text of the alert with which the other end refused, "" without one.
func alertText(err error) string {
	if alert := new(net.OpError); errors.As(err, &alert) && alert.Op == "remote error" {
		return alert.Err.Error()
	}
	return ""
}

// LegacyTLS lets a configuration offer what is not safe any more, and what Go still can do: TLS 1.0 and 1.1,
// RSA key exchange, and CBC with 3DES or SHA-256. RC4 is left out (RFC 7465).
func LegacyTLS(config *tls.Config) {
	config.MinVersion = tls.VersionTLS10
	config.CipherSuites = nil
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		switch suite.ID {
		case tls.TLS_RSA_WITH_RC4_128_SHA, tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA, tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA:
		default:
			config.CipherSuites = append(config.CipherSuites, suite.ID)
		}
	}
}

// probe makes a handshake by LegacyTLS with a short hello.
func (s *helloState) probe(ctx context.Context, again Dial, config *tls.Config, hellos *Hellos) {
	socket, err := again(ctx)
	if err != nil {
		return
	}
	defer socket.Close()
	LegacyTLS(config)
	config.CurvePreferences = classicCurves
	secure := tls.Client(socket, config)
	if secure.HandshakeContext(ctx) != nil {
		return
	}
	accepted := secure.ConnectionState()
	isSafe := slices.ContainsFunc(tls.CipherSuites(), func(one *tls.CipherSuite) bool { return one.ID == accepted.CipherSuite })
	if isSafe && accepted.Version >= tls.VersionTLS12 {
		hellos.lost(s, false)
		return
	}
	takes := fmt.Sprintf("%s with %s", tls.VersionName(accepted.Version), tls.CipherSuiteName(accepted.CipherSuite))
	s.takes.Store(&takes)
}

// isOffer reports whether the server refused what was offered.
func (e *HandshakeError) isOffer() bool {
	text := alertText(e.err)
	return text == "tls: handshake failure" || text == "tls: protocol version not supported"
}

// legacy asks a server that refused a handshake whether it takes LegacyTLS, and says so in the error. The
// hello is short: this alone may be what the server wants.
func (e *HandshakeError) legacy(ctx context.Context, address string, again Dial, config *tls.Config, hellos *Hellos) {
	if !e.isOffer() || again == nil || len(config.CipherSuites) > 0 || config.MinVersion > tls.VersionTLS12 {
		return
	}
	state := hellos.at(address)
	if state.isProbed.CompareAndSwap(false, true) {
		state.probe(ctx, again, config.Clone(), hellos)
	}
	if e.again = hellos.isShort(state); e.again {
		return
	}
	if e.hint = "the server may have only what Go cannot do, such as DHE or X448"; state.takes.Load() != nil {
		e.hint = "the server takes " + *state.takes.Load() + ", which is not safe: --tls-legacy allows that"
	}
}
