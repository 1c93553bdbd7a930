package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
)

// quicConfig holds the receive windows of a connection. All requests together leave at most connectionWindowQUIC
// bytes unread in memory: QUIC has no other way to slow a server down. It is the window of a stream and half as much,
// which is quic-go's proportion. Servers open no streams with requests (RFC 9114 6.1).
var quicConfig = &quic.Config{
	InitialStreamReceiveWindow: streamWindow, MaxStreamReceiveWindow: streamWindow,
	InitialConnectionReceiveWindow: connectionWindowQUIC, MaxConnectionReceiveWindow: connectionWindowQUIC,
	MaxIncomingStreams: -1,
}

const connectionWindowQUIC = streamWindow + streamWindow/2

// dialQUIC makes a connection for HTTP/3 with the server of a URL, by QUIC (RFC 9000) over a link, at HOST:PORT. The
// server must have a certificate for the URL's host.
func dialQUIC(ctx context.Context, packets packetDial, u *url.URL, at string, config *tls.Config) (*quicSocket, error) {
	socket, err := packets(ctx)
	if err != nil {
		return nil, err
	}
	q := &quicSocket{PacketSocket: socket, by: &quic.Transport{Conn: socket}, since: time.Now()}
	if err := q.dial(ctx, u, at, config.Clone()); err != nil {
		q.Close()
		return nil, quicError(err)
	}
	return q, nil
}

// quicSocket is a connection of QUIC, with its own UDP socket. It carries streams, and no bytes of its own.
type quicSocket struct {
	link.PacketSocket
	by    *quic.Transport
	conn  quicConn
	since time.Time
	// used is the HOST:PORT of Alt-Svc that is used. failed, where HTTP/3 was offered, tells that it fails.
	used   string
	failed func()
}

// quicConn is a connection of QUIC. server is the server's address with the port of the URL.
type quicConn struct {
	*quic.Conn
	server *net.UDPAddr
}

func (c quicConn) Close() error {
	return c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

func (q *quicSocket) dial(ctx context.Context, u *url.URL, at string, config *tls.Config) error {
	config.ServerName = serverName(u.Hostname())
	conn, err := q.Connect(ctx, at, func(ctx context.Context, to netip.AddrPort) (io.Closer, error) {
		conn, err := q.by.Dial(ctx, net.UDPAddrFromAddrPort(to), config, quicConfig)
		return quicConn{conn, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Addr(), portOf(u)))}, err
	})
	if err != nil {
		return err
	}
	q.conn = conn.(quicConn)
	return nil
}

func (q *quicSocket) RemoteAddr() net.Addr      { return q.conn.server }
func (*quicSocket) Read([]byte) (int, error)    { return 0, errors.ErrUnsupported }
func (*quicSocket) Write(p []byte) (int, error) { return 0, errors.ErrUnsupported }

// Close closes the connection with its socket.
func (q *quicSocket) Close() error {
	if q.conn.Conn != nil {
		_ = q.conn.Close()
	}
	return errors.Join(q.by.Close(), q.PacketSocket.Close())
}

// Await and Owes do nothing: quic-go reads packets as they come, and sends no keep-alives.
func (*quicSocket) Await(quantity.Bytes, quantity.Bytes) {}
func (*quicSocket) Owes(bool)                            {}

// Trial returns nil: only a Pacer adds a Trial.
func (*quicSocket) Trial() *link.Trial { return nil }

// reservedStream is a type of streams that have no meaning. The other end reads or refuses such a stream (RFC 9114
// 6.2.3).
const reservedStream = 0x21

// Ask sends a stream without meaning, because quic-go sends no PING on demand. The other end acknowledges it at
// once.
func (q *quicSocket) Ask() error {
	stream, err := q.conn.OpenUniStream()
	if err != nil {
		return err
	}
	if _, err := stream.Write([]byte{reservedStream}); err != nil {
		return err
	}
	return stream.Close()
}

// Answered says that all bytes were acknowledged, and when the connection was made: quic-go tells neither. What
// arrives counts as received.
func (q *quicSocket) Answered() (ago time.Duration, all bool, err error) {
	return time.Since(q.since), true, nil
}

// RoundTrip returns quic-go's estimates. It counts neither packets out of order nor acknowledged bytes.
func (q *quicSocket) RoundTrip() (link.RoundTrip, error) {
	stats := q.conn.ConnectionStats()
	return link.RoundTrip{Last: stats.SmoothedRTT, Min: stats.MinRTT, Sending: stats.SmoothedRTT}, nil
}

// Load returns the bytes of the packets that arrived.
func (q *quicSocket) Load() int64 { return int64(q.conn.ConnectionStats().BytesReceived) }

// quicBelow returns the connection of QUIC below a socket with a Trial, nil if it is one of TCP.
func quicBelow(socket net.Conn) *quicSocket {
	for {
		if q, ok := socket.(*quicSocket); ok {
			return q
		}
		above, ok := socket.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		socket = above.NetConn()
	}
}

// http3Session sends requests on a connection.
type http3Session struct {
	*http3.ClientConn
	socket link.Socket
	below  *quicSocket
	// answers is true once the server has answered a request.
	answers atomic.Bool
	// goingAway is true if the server takes no new requests. quic-go tells that with the next one.
	goingAway atomic.Bool
}

func openHTTP3(q *quicSocket, socket link.Socket, hellos *Hellos) *Conn {
	by := &http3.Transport{DisableCompression: true, MaxResponseHeaderBytes: mostHeader}
	s := &http3Session{ClientConn: by.NewClientConn(q.conn.Conn), socket: socket, below: q}
	return &Conn{http: s, usable: s.usable, received: q, ask: q.Ask, hellos: hellos, Protocol: "TLS 1.3 " + http3.NextProtoH3, Socket: socket}
}

func (s *http3Session) usable() bool { return s.Context().Err() == nil && !s.goingAway.Load() }

func (s *http3Session) Close() error { return s.socket.Close() }

// errMisdirected says that the server of an offer does not answer for the host (RFC 7838 6).
var errMisdirected = errors.New("the server's port for HTTP/3 does not serve the host: 421")

// RoundTrip sends a request.
func (s *http3Session) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := time.Now()
	if s.below.used != "" {
		request.Header.Set("Alt-Used", s.below.used)
	}
	response, err := s.ClientConn.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusMisdirectedRequest && s.below.failed != nil {
		response.Body.Close()
		err = errMisdirected
	}
	if err != nil {
		// quic-go has no name for this error, which a server's GOAWAY causes.
		isGoodbye := strings.Contains(err.Error(), "graceful shutdown")
		s.goingAway.CompareAndSwap(false, isGoodbye)
		isUnanswered := !s.answers.Load() && (request.Context().Err() == nil || time.Since(sent) >= quicPatience)
		s.fails(isUnanswered || !isGoodbye && isOfServer(err))
		return nil, quicError(err)
	}
	s.answers.Store(true)
	response.Body = http3Body{response.Body, s}
	return response, nil
}

// fails gives an offered port up if it fails. Requests do not fail there that this side ends.
func (s *http3Session) fails(isFailure bool) {
	if isFailure && s.below.failed != nil {
		s.goingAway.Store(true)
		s.below.failed()
	}
}

// isOfServer reports whether the server ended a request or its connection.
func isOfServer(err error) bool {
	ended := new(http3.Error)
	return err == errMisdirected || errors.As(err, &ended) && ended.Remote || errors.As(quicError(err), new(endedError))
}

// http3Body is a body with the errors of this package.
type http3Body struct {
	io.ReadCloser
	of *http3Session
}

func (b http3Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.of.fails(isOfServer(err))
	}
	return n, quicError(err)
}

// endedError is the end of a connection or request by the other end. quic-go's errors also say that this side closed
// it (net.ErrClosed), which a Pacer does not count as a failure.
type endedError struct{ text string }

func (e endedError) Error() string { return e.text }

func (endedError) Is(target error) bool { return target == syscall.ECONNRESET }

// quicError returns an error of quic-go as this package reports it.
func quicError(err error) error {
	transport, application, reset := new(quic.TransportError), new(quic.ApplicationError), new(quic.StatelessResetError)
	wrong, version := new(tls.CertificateVerificationError), new(quic.VersionNegotiationError)
	switch {
	case errors.As(err, &wrong):
		return &HandshakeError{err: wrong}
	case errors.As(err, &version):
		return &HandshakeError{err: errors.New("tls: " + version.Error())}
	case errors.As(err, &transport) && transport.ErrorCode.IsCryptoError():
		return &HandshakeError{err: endedError{"tls: " + transport.Error()}}
	case errors.As(err, &transport) && transport.Remote, errors.As(err, &application) && application.Remote, errors.As(err, &reset):
		return endedError{fmt.Sprintf("the server ended the connection: %v", err)}
	}
	return err
}
