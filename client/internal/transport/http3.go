package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
)

// http3Alone are the protocols of a TLS configuration with which Open speaks HTTP/3.
var http3Alone = []string{http3.NextProtoH3}

// quicConfig holds the receive windows of a connection. All requests together leave at most connectionWindowQUIC
// bytes unread in memory: QUIC has no other way to slow a server down. It is the window of a stream and half as much,
// which is quic-go's proportion. Servers open no streams with requests (RFC 9114 6.1).
var quicConfig = &quic.Config{
	InitialStreamReceiveWindow: streamWindow, MaxStreamReceiveWindow: streamWindow,
	InitialConnectionReceiveWindow: connectionWindowQUIC, MaxConnectionReceiveWindow: connectionWindowQUIC,
	MaxIncomingStreams: -1,
}

const connectionWindowQUIC = streamWindow + streamWindow/2

// HTTP3 makes the TLS configuration one for HTTP/3 alone. It returns a dial for such connections: by QUIC (RFC 9000)
// over a link, whose sockets packets opens.
func HTTP3(packets func(context.Context) (link.PacketSocket, error), config *tls.Config) func(context.Context, string) (link.Socket, error) {
	config.NextProtos = http3Alone
	_ = os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true") // The kernel's usual buffer will do.
	var names sync.Map                                              // The host that led to an address.
	return func(ctx context.Context, address string) (link.Socket, error) {
		socket, err := packets(ctx)
		if err != nil {
			return nil, err
		}
		q := &quicSocket{PacketSocket: socket, by: &quic.Transport{Conn: socket}, since: time.Now()}
		if err := q.dial(ctx, address, config.Clone(), &names); err != nil {
			q.Close()
			return nil, quicError(err)
		}
		return q, nil
	}
}

// quicSocket is a connection of QUIC, with its own UDP socket. It carries streams, and no bytes of its own.
type quicSocket struct {
	link.PacketSocket
	by    *quic.Transport
	conn  *quic.Conn
	since time.Time
}

// dial makes the connection. The server must have a certificate for the host, or for the host that led to the
// address before.
func (q *quicSocket) dial(ctx context.Context, address string, config *tls.Config, names *sync.Map) error {
	to, err := q.Resolve(ctx, address)
	if err != nil {
		return &net.OpError{Op: "dial", Net: "udp", Err: err}
	}
	host, _, _ := net.SplitHostPort(address)
	if name, ok := names.Load(address); ok {
		host = name.(string)
	}
	names.Store(to.String(), host)
	config.ServerName = serverName(host)
	q.conn, err = q.by.Dial(ctx, net.UDPAddrFromAddrPort(to), config, quicConfig)
	return err
}

func (q *quicSocket) RemoteAddr() net.Addr      { return q.conn.RemoteAddr() }
func (*quicSocket) Read([]byte) (int, error)    { return 0, errors.ErrUnsupported }
func (*quicSocket) Write(p []byte) (int, error) { return 0, errors.ErrUnsupported }

// Close closes the connection with its socket.
func (q *quicSocket) Close() error {
	if q.conn != nil {
		_ = q.conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
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

// quicBelow returns the connection of QUIC below a socket with a Trial.
func quicBelow(socket net.Conn) *quicSocket {
	for {
		if q, ok := socket.(*quicSocket); ok {
			return q
		}
		socket = socket.(interface{ NetConn() net.Conn }).NetConn()
	}
}

// http3Session sends requests on a connection.
type http3Session struct {
	*http3.ClientConn
	socket link.Socket
	// goingAway is true if the server takes no new requests. quic-go tells that with the next one.
	goingAway atomic.Bool
}

func openHTTP3(socket link.Socket) *Conn {
	q := quicBelow(socket)
	by := &http3.Transport{DisableCompression: true, MaxResponseHeaderBytes: mostHeader}
	s := &http3Session{ClientConn: by.NewClientConn(q.conn), socket: socket}
	return &Conn{http: s, usable: s.usable, received: q, ask: q.Ask, Protocol: "TLS 1.3 " + http3.NextProtoH3, Socket: socket}
}

func (s *http3Session) usable() bool { return s.Context().Err() == nil && !s.goingAway.Load() }

func (s *http3Session) Close() error { return s.socket.Close() }

// RoundTrip sends a request.
func (s *http3Session) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.ClientConn.RoundTrip(request)
	if err != nil {
		// quic-go has no name for this error, which a server's GOAWAY causes.
		s.goingAway.CompareAndSwap(false, strings.Contains(err.Error(), "graceful shutdown"))
		return nil, quicError(err)
	}
	response.Body = http3Body{response.Body}
	return response, nil
}

// http3Body is a body with the errors of this package.
type http3Body struct{ io.ReadCloser }

func (b http3Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
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
