// Package transport speaks HTTP to a server. A link has one HTTP/2 or HTTP/3 connection, or a few
// HTTP/1.1 connections. No other link takes a connection over: after a change of links, a
// TCP connection starts again with nothing (thesis 4.4.3.3).
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
)

// HTTP/2 receive windows in bytes. A stream must hold the bandwidth-delay product.
// creditSaver always leaves three quarters of 16 MiB, which carry 500 Mbit/s at 200 ms. A
// connection holds several streams. The client writes what it receives straight to a file,
// so it has no reason to slow the server down.
const (
	streamWindow     = 16 << 20
	connectionWindow = 1 << 30
)

// Conn is a session with one server.
type Conn struct {
	http interface {
		http.RoundTripper
		Close() error
	}
	// usable reports whether new requests can be sent.
	usable func() bool
	// received counts all bytes that arrive.
	received interface{ Load() int64 }
	// ask asks the other end for an answer at once; nil over HTTP/1.1.
	ask func() error
	// counter counts the arriving bytes of bodies; nil without HTTP/2.
	counter *dataCounter
	// delivered counts the bytes of bodies that were read.
	delivered atomic.Int64
	// saver and backlog are nil without HTTP/2.
	saver   *creditSaver
	backlog *backlog
	// cause holds why an HTTP/2 connection ended; nil without HTTP/2.
	cause *endCause
	// hellos takes what answers say of HTTP/3.
	hellos *Hellos
	// unconditional is true if the server answers If-Range with the whole file.
	unconditional atomic.Bool
	// Protocol names the negotiated protocols, such as "TLS 1.3 h2".
	Protocol string
	// Socket is the network connection, or stands for all connections.
	Socket link.Socket
}

// Address returns the TCP address of the server of an http or https URL.
func Address(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func portOf(u *url.URL) uint16 {
	_, text, _ := net.SplitHostPort(Address(u))
	port, _ := strconv.ParseUint(text, 10, 16)
	return uint16(port)
}

// IsSameOrigin reports whether two http or https URLs have one origin (RFC 6454 4): scheme, host and port.
func IsSameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && Address(a) == Address(b) }

// serverName returns a host as certificates name it: without the zone of an IPv6 address, which has a
// meaning on this machine only (RFC 6874 1).
func serverName(host string) string {
	name, _, _ := strings.Cut(host, "%")
	return name
}

// Dial makes another network connection to the same server.
type Dial func(context.Context) (link.Socket, error)

// Open starts an HTTP session with the server of the URL u on a new network connection. On
// failure it closes the connection. The session uses HTTP/2 if the server of an https URL
// offers it, else HTTP/1.1, which may dial again. The configuration may set the oldest TLS
// version; the default is Go's. It uses HTTP/3 on a connection of QUIC (see HTTP3).
func Open(ctx context.Context, socket link.Socket, again Dial, config *tls.Config, hellos *Hellos, u *url.URL) (*Conn, error) {
	if hellos != nil && hellos.HTTP3 != nil {
		if q := quicBelow(socket); q != nil {
			return openHTTP3(q, socket, hellos), nil
		}
	}
	if u.Scheme == "http" {
		return openHTTP1(socket, again, nil, nil, "http/1.1", new(atomic.Int64)), nil
	}
	config = config.Clone()
	config.ServerName = serverName(u.Hostname())
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	received := new(atomic.Int64)
	secure, err := secured(ctx, socket, again, config, hellos, received)
	if err != nil {
		return nil, err
	}
	state := secure.ConnectionState()
	if state.NegotiatedProtocol == "h2" && !carriesHTTP2(state) {
		secure.Close()
		if !slices.Contains(config.NextProtos, "http/1.1") {
			return nil, &HandshakeError{err: fmt.Errorf("the server chose HTTP/2 with %s, which RFC 9113 does not allow", tls.CipherSuiteName(state.CipherSuite))}
		}
		config.NextProtos = []string{"http/1.1"}
		if socket, err = again(ctx); err != nil {
			return nil, err
		}
		if secure, err = secured(ctx, socket, again, config, hellos, received); err != nil {
			return nil, err
		}
		state = secure.ConnectionState()
	}
	if state.NegotiatedProtocol != "h2" {
		config.NextProtos = []string{"http/1.1"}
		return openHTTP1(secure, again, config, hellos, tls.VersionName(state.Version)+" http/1.1", received), nil
	}

	// The connection is already encrypted, so net/http gets it as one without TLS. Only so
	// net/http takes a connection that is no *tls.Conn.
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	backlog := newBacklog()
	cause := new(endCause)
	counter := newDataCounter(secure.Conn, backlog, cause)
	saver := newCreditSaver(counter, backlog, cause)
	transport := Bounded()
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return saver, nil }
	transport.Protocols = protocols
	transport.HTTP2 = &http.HTTP2Config{
		MaxReceiveBufferPerStream:     streamWindow,
		MaxReceiveBufferPerConnection: connectionWindow,
	}
	client, err := transport.NewClientConn(ctx, "http", Address(u))
	if err != nil {
		secure.Close()
		return nil, printable.Error(fmt.Errorf("start HTTP/2: %w", cause.explained(err)))
	}
	protocol := tls.VersionName(state.Version) + " " + state.NegotiatedProtocol
	return &Conn{
		http:     client,
		usable:   func() bool { return client.Err() == nil && !counter.goingAway.Load() },
		received: received,
		ask:      saver.ping,
		counter:  counter,
		saver:    saver,
		backlog:  backlog,
		cause:    cause,
		hellos:   hellos,
		Protocol: protocol,
		Socket:   secure.raw,
	}, nil
}

// secured makes the TLS handshake on a connection, and counts what arrives. On failure it
// closes the connection. It may dial again to send another hello.
func secured(ctx context.Context, raw link.Socket, again Dial, config *tls.Config, hellos *Hellos, received *atomic.Int64) (*securedSocket, error) {
	hellos = hellos.orNew()
	for isFirst := true; ; isFirst = false {
		secure, below, failure := handshake(ctx, &meteredConn{raw, received}, config, hellos)
		if failure == nil {
			return &securedSocket{secure, raw, below}, nil
		}
		if ctx.Err() == nil && !failure.again {
			raw.Trial().Fail(printable.Error(failure.err))
			failure.legacy(ctx, raw.RemoteAddr().String(), again, config, hellos)
		}
		if ctx.Err() != nil || !failure.again || again == nil || !isFirst {
			return nil, failure
		}
		next, err := again(ctx)
		if err != nil {
			return nil, failure
		}
		raw = next
	}
}

// Secure makes a connection and the TLS handshake with an address. Below TLS is an EndNoticer. timeout limits
// each handshake.
func Secure(ctx context.Context, dial func(context.Context) (net.Conn, error), config *tls.Config, hellos *Hellos, address string, timeout time.Duration) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config, hellos = config.Clone(), hellos.orNew()
	config.ServerName = serverName(host)
	for isFirst := true; ; isFirst = false {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		limited, cancel := context.WithTimeout(ctx, timeout)
		secure, _, failure := handshake(limited, conn, config, hellos)
		cancel()
		if failure == nil {
			return secure, nil
		}
		if isFirst && failure.isOffer() {
			failure.again = hellos.lost(hellos.at(conn.RemoteAddr().String()), false)
		}
		if ctx.Err() != nil || !failure.again {
			return nil, failure
		}
	}
}

// Close closes the session. Requests in flight fail.
func (c *Conn) Close() error {
	if c.cause != nil {
		c.cause.is(errClosed, true)
	}
	return c.http.Close()
}

var errClosed = errors.New("the connection was closed by this side")

// Usable reports whether new requests can be sent: the connection is open and the server
// has sent no GOAWAY. If the server allows no further request at a time, a request waits
// until another has ended.
func (c *Conn) Usable() bool { return c.usable() }

// Received returns the number of bytes of any kind that have arrived.
func (c *Conn) Received() quantity.Bytes { return quantity.Bytes(c.received.Load()) }

// Unread returns the number of bytes of bodies that have arrived and were not read. They
// belong to cancelled requests, or will be read soon.
func (c *Conn) Unread() quantity.Bytes {
	if c.counter == nil {
		return 0
	}
	return quantity.Bytes(c.counter.data.Load() - c.delivered.Load())
}

// Bodies returns the number of bytes of bodies that have arrived, over HTTP/1.1 those that were read.
func (c *Conn) Bodies() quantity.Bytes { return quantity.Bytes(c.delivered.Load()) + c.Unread() }

// Ask asks the other end whether it is alive: by HTTP/2 and QUIC at once, else by TCP as soon
// as TCP can. The answer counts as received, or as acknowledged (see Answered).
func (c *Conn) Ask() error {
	if c.ask != nil {
		return c.ask()
	}
	return c.Socket.Ask()
}

// AsksAtOnce reports whether Ask gets an answer in a round trip, and the connection takes several requests.
func (c *Conn) AsksAtOnce() bool { return c.ask != nil }

// IsFull reports whether so many requests without an answer leave none of the connections of HTTP/1.1 free.
func (c *Conn) IsFull(requests int) bool { return !c.AsksAtOnce() && requests >= http1Connections }

// Held reports whether the connection is not read because the readers of bodies are slower.
func (c *Conn) Held() bool { return c.backlog != nil && c.backlog.isHeld() }

// explained returns the error of a request, or why its connection had ended before.
func (c *Conn) explained(err error) error {
	if c.cause == nil {
		return err
	}
	return c.cause.explained(err)
}

// Ended returns why the connection takes no more requests, nil if unknown.
func (c *Conn) Ended() error {
	if c.cause == nil {
		return nil
	}
	ended := c.cause.get()
	if ended == nil && !c.usable() && !c.counter.goingAway.Load() {
		ended = errBroken // net/http itself ended it, and tells only the requests in flight why.
	}
	return printable.Error(ended)
}

// meteredConn counts the bytes that it receives.
type meteredConn struct {
	net.Conn
	received *atomic.Int64
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}
