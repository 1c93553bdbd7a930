// Package transport speaks HTTP/2 over TLS to a server: one connection for
// each link, which no other link adopts (thesis, section 4.4.3.3: a link
// that changes its TCP connection starts from nothing).
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"

	"github.com/linklab/linklab/client/internal/ranges"
)

// HTTP/2 receive windows in bytes. A stream must hold the bandwidth-delay
// product: three quarters of 16 MiB, which creditSaver always leaves, carry
// 500 Mbit/s at 200 ms. A connection holds several streams, and a client that
// writes what it receives straight to a file has no reason to hold the server
// back.
const (
	streamWindow     = 16 << 20
	connectionWindow = 1 << 30
)

// Conn is an HTTP/2 connection to the server of one URL.
type Conn struct {
	http *http.ClientConn
	url  *url.URL
	// Protocol is what was agreed on, such as "TLS 1.3 h2".
	Protocol string
}

// Address is the TCP address of the server of an https URL.
func Address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Open starts TLS 1.3 and HTTP/2 with the server of the https URL u on a
// fresh network connection, which it closes on failure.
func Open(ctx context.Context, raw net.Conn, config *tls.Config, u *url.URL) (*Conn, error) {
	config = config.Clone()
	config.ServerName = u.Hostname()
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = []string{"h2"}
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	state := secure.ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		secure.Close()
		return nil, errors.New("the server does not offer HTTP/2")
	}

	// The connection is already secure, so to net/http it is one without
	// TLS: only that way it takes a connection that is not a bare *tls.Conn.
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return newCreditSaver(secure), nil },
		Protocols:          protocols,
		DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream:     streamWindow,
			MaxReceiveBufferPerConnection: connectionWindow,
		},
	}
	client, err := transport.NewClientConn(ctx, "http", Address(u))
	if err != nil {
		secure.Close()
		return nil, fmt.Errorf("start HTTP/2: %w", err)
	}
	protocol := tls.VersionName(state.Version) + " " + state.NegotiatedProtocol
	return &Conn{http: client, url: u, Protocol: protocol}, nil
}

// Close closes the connection; requests in flight fail.
func (c *Conn) Close() error { return c.http.Close() }

// Head asks what the URL stands for. The header is sent along.
func (c *Conn) Head(ctx context.Context, header http.Header) (Resource, error) {
	request, err := c.request(ctx, http.MethodHead, header)
	if err != nil {
		return Resource{}, err
	}
	response, err := c.http.RoundTrip(request)
	if err != nil {
		return Resource{}, err
	}
	response.Body.Close()
	return newResource(response)
}

// Get requests a range of the resource and returns its body once the header
// proves that it is the right one. The body fails if it is shorter or longer
// than the range.
func (c *Conn) Get(ctx context.Context, header http.Header, resource Resource, r ranges.Range) (io.ReadCloser, error) {
	request, err := c.request(ctx, http.MethodGet, header)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.Offset, r.End()-1))
	response, err := c.http.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := resource.check(response, r); err != nil {
		response.Body.Close()
		return nil, err
	}
	return &exactBody{response.Body, r.Length}, nil
}

func (c *Conn) request(ctx context.Context, method string, header http.Header) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	return request, nil
}

// ErrTooLong says that a body goes on after the end of the requested range.
var ErrTooLong = errors.New("the response is longer than the requested range")

// exactBody is a body that must have a known length.
type exactBody struct {
	io.ReadCloser
	left int64
}

func (b *exactBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, ErrTooLong
	case err == io.EOF && b.left > 0:
		return n, fmt.Errorf("the response ended %d bytes before the end of the requested range", b.left)
	}
	return n, err
}
