// Package transport speaks HTTP to a server. A link has one HTTP/2 connection, or a few
// HTTP/1.1 connections. No other link takes a connection over: after a change of links, a
// TCP connection starts again with nothing (thesis 4.4.3.3).
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
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
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
	received *atomic.Int64
	// counter counts the arriving bytes of bodies; nil without HTTP/2.
	counter *dataCounter
	// delivered counts the bytes of bodies that were read.
	delivered atomic.Int64
	// saver and backlog are nil without HTTP/2.
	saver   *creditSaver
	backlog *backlog
	// cause holds why an HTTP/2 connection ended; nil without HTTP/2.
	cause *endCause
	// unconditional is true if the server answers If-Range with the whole file.
	unconditional atomic.Bool
	// Protocol names the negotiated protocols, such as "TLS 1.3 h2".
	Protocol string
	// Socket is the network connection, or stands for all connections.
	Socket link.Socket
}

// Target is a URL with the header to send.
type Target struct {
	URL    *url.URL
	Header http.Header
	// Jar, if set, provides cookies and keeps those of answers.
	Jar http.CookieJar
	// Bare omits the fields that no server needs. The published results were measured
	// without these fields, and only so they repeat to the byte.
	Bare bool
	// IsFile is true if a web page cannot be the right answer.
	IsFile bool
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

// Dial makes another network connection to the same server.
type Dial func(context.Context) (link.Socket, error)

// Open starts an HTTP session with the server of the URL u on a new network connection. On
// failure it closes the connection. The session uses HTTP/2 if the server of an https URL
// offers it, else HTTP/1.1, which may dial again. The configuration may set the oldest TLS
// version; the default is Go's.
func Open(ctx context.Context, socket link.Socket, again Dial, config *tls.Config, u *url.URL) (*Conn, error) {
	if u.Scheme == "http" {
		return openHTTP1(socket, again, nil, "http/1.1", new(atomic.Int64)), nil
	}
	config = config.Clone()
	config.ServerName = u.Hostname()
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	received := new(atomic.Int64)
	secure, err := secured(ctx, socket, config, received)
	if err != nil {
		return nil, err
	}
	state := secure.ConnectionState()
	if state.NegotiatedProtocol == "h2" && !carriesHTTP2(state) {
		secure.Close()
		if !slices.Contains(config.NextProtos, "http/1.1") {
			return nil, &HandshakeError{fmt.Errorf("the server chose HTTP/2 with %s, which RFC 9113 does not allow", tls.CipherSuiteName(state.CipherSuite))}
		}
		config.NextProtos = []string{"http/1.1"}
		if socket, err = again(ctx); err != nil {
			return nil, err
		}
		if secure, err = secured(ctx, socket, config, received); err != nil {
			return nil, err
		}
		state = secure.ConnectionState()
	}
	if state.NegotiatedProtocol != "h2" {
		config.NextProtos = []string{"http/1.1"}
		return openHTTP1(secure, again, config, tls.VersionName(state.Version)+" http/1.1", received), nil
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
		counter:  counter,
		saver:    saver,
		backlog:  backlog,
		cause:    cause,
		Protocol: protocol,
		Socket:   socket,
	}, nil
}

// secured makes the TLS handshake on a connection, and counts what arrives. On failure it
// closes the connection.
func secured(ctx context.Context, raw link.Socket, config *tls.Config, received *atomic.Int64) (*securedSocket, error) {
	below := &EndNoticer{Conn: &meteredConn{raw, received}}
	secure := tls.Client(below, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		if ctx.Err() == nil {
			raw.Trial().Fail(printable.Error(err))
		}
		raw.Close()
		return nil, &HandshakeError{err}
	}
	return &securedSocket{secure, raw, below}, nil
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

// Ask asks the other end whether it is alive: by an HTTP/2 PING at once, else by TCP as soon
// as TCP can. The answer counts as received, or as acknowledged (see Answered).
func (c *Conn) Ask() error {
	if c.saver != nil {
		return c.saver.ping()
	}
	return c.Socket.Ask()
}

// AsksAtOnce reports whether Ask sends a PING.
func (c *Conn) AsksAtOnce() bool { return c.saver != nil }

// Held reports whether the connection is not read because the readers of bodies are slower.
func (c *Conn) Held() bool { return c.backlog != nil && c.backlog.isHeld() }

// Head requests the resource of the target by HEAD.
func (c *Conn) Head(ctx context.Context, t Target) (Resource, error) {
	response, err := c.do(ctx, http.MethodHead, t, wantDigest(t))
	if err != nil {
		return Resource{}, err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Resource{}, failure(response)
	}
	resource, err := newResource(response)
	resource.Server = serverOf(response)
	return resource, err
}

// Peek requests the resource of the target by GET, for servers that do not answer HEAD.
func (c *Conn) Peek(ctx context.Context, t Target) (Resource, error) {
	fields := wantDigest(t)
	fields["Range"] = "bytes=0-0"
	response, err := c.do(ctx, http.MethodGet, t, fields)
	if err == nil && RefusesRanges(response.StatusCode) {
		// An empty file has no first byte, and some servers serve no ranges.
		response.Body.Close()
		response, err = c.do(ctx, http.MethodGet, t, wantDigest(t))
	}
	if err != nil {
		return Resource{}, err
	}
	if response.StatusCode == http.StatusPartialContent {
		_, _ = io.CopyN(io.Discard, response.Body, 2) // So that the connection can be used again.
	}
	response.Body.Close()
	switch {
	case response.StatusCode == http.StatusPartialContent:
		resource, _, err := Partial(response)
		if errors.Is(err, ErrNoRanges) {
			resource, err = newResource(response)
			resource.Size, resource.NoRanges = -1, true
		}
		return resource, err
	case response.StatusCode == http.StatusOK, IsWhole(response):
		resource, err := newResource(response)
		resource.NoRanges = resource.Size != 0
		return resource, err
	}
	return Resource{}, failure(response)
}

// Begin requests a range of a target of which nothing is known. It returns the resource and
// the body: as much of the range as the file has.
func (c *Conn) Begin(ctx context.Context, t Target, part ranges.Range) (Resource, io.ReadCloser, error) {
	fields := wantDigest(t)
	fields["Range"] = RangeHeader(part)
	response, err := c.do(ctx, http.MethodGet, t, fields)
	if err != nil {
		return Resource{}, nil, err
	}
	resource := Resource{}
	switch response.StatusCode {
	case http.StatusPartialContent:
		resource, _, err = Partial(response)
		resource.Server = serverOf(response)
	case http.StatusOK:
		err = ErrNoRanges
	default:
		err = failure(response)
	}
	if err == nil {
		part.Length = min(part.Length, resource.Size-part.Offset)
		var body io.ReadCloser
		if body, err = c.all(ctx, t, resource, part, response); err == nil {
			return resource, body, nil
		}
	}
	response.Body.Close()
	return Resource{}, nil, err
}

// wantDigest returns the fields that request the checksum of the whole file.
func wantDigest(t Target) map[string]string {
	if t.Bare {
		return map[string]string{}
	}
	return map[string]string{"Want-Repr-Digest": "sha-256=5"}
}

// Get requests a range of the resource. It returns the body once the header proves that it is
// the right one. If the server sends less, the body requests the rest. A read fails if the
// body is shorter or longer than the range.
func (c *Conn) Get(ctx context.Context, t Target, resource Resource, r ranges.Range) (io.ReadCloser, error) {
	response, err := c.get(ctx, t, resource, r)
	if err != nil {
		return nil, err
	}
	return c.all(ctx, t, resource, r, response)
}

// all returns the body of a range of which the response brings the first bytes. On failure it
// closes the response.
func (c *Conn) all(ctx context.Context, t Target, resource Resource, r ranges.Range, response *http.Response) (io.ReadCloser, error) {
	body, part, err := resource.part(response, r)
	if err != nil {
		response.Body.Close()
		return nil, from(response, err)
	}
	if part == r {
		return body, nil
	}
	rest := ranges.Range{Offset: part.End(), Length: r.End() - part.End()}
	return &pieceBody{body, part, rest, func(rest ranges.Range) (io.ReadCloser, ranges.Range, error) {
		response, err := c.get(ctx, t, resource, rest)
		if err != nil {
			return nil, ranges.Range{}, err
		}
		body, part, err := resource.part(response, rest)
		if err != nil {
			response.Body.Close()
			return nil, ranges.Range{}, from(response, err)
		}
		return body, part, nil
	}}, nil
}

// get requests a range, on condition that the file is unchanged. Some servers answer this
// condition with the whole file even if it is unchanged. They get no condition any more.
func (c *Conn) get(ctx context.Context, t Target, resource Resource, r ranges.Range) (*http.Response, error) {
	fields := map[string]string{"Range": RangeHeader(r)}
	if resource.ETag == "" || t.Bare || c.unconditional.Load() {
		return c.do(ctx, http.MethodGet, t, fields)
	}
	fields["If-Range"] = resource.ETag
	response, err := c.do(ctx, http.MethodGet, t, fields)
	if err != nil || response.StatusCode != http.StatusOK || resource.checkWhole(response) != nil {
		return response, err
	}
	response.Body.Close()
	c.unconditional.Store(true)
	delete(fields, "If-Range")
	return c.do(ctx, http.MethodGet, t, fields)
}

// Whole requests the whole resource without a range. Its size may be unknown.
func (c *Conn) Whole(ctx context.Context, t Target, resource Resource) (*WholeBody, error) {
	var by net.Conn
	response, err := c.do(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { by = got.Conn },
	}), http.MethodGet, t, nil)
	if err != nil {
		return nil, err
	}
	if err := resource.checkWhole(response); err != nil {
		response.Body.Close()
		return nil, from(response, err)
	}
	if resource.Size >= 0 {
		return &WholeBody{&exactBody{response.Body, resource.Size}, nil}, nil
	}
	return newWholeBody(response, by), nil
}

// Put sends a body as a part of the target, whose whole size is given (RFC 9110 14.5). An
// empty part means the whole. It returns the status of the answer as a code and as text. The
// body of the answer is dropped.
func (c *Conn) Put(ctx context.Context, t Target, body io.Reader, part ranges.Range, size quantity.Bytes) (code int, status string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, t.URL.String(), body)
	if err != nil {
		return 0, "", err
	}
	t.complete(request)
	request.ContentLength = int64(size)
	if part.Length > 0 {
		request.ContentLength = int64(part.Length)
		request.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", int64(part.Offset), int64(part.End()-1), int64(size)))
	}
	response, err := c.send(request)
	if err != nil {
		return 0, "", err
	}
	t.keepCookies(response)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	return response.StatusCode, response.Status, err
}

func (c *Conn) do(ctx context.Context, method string, t Target, fields map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, t.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	t.complete(request)
	if !t.Bare {
		// Without this field the server may use any coding (RFC 9110 12.5.3).
		request.Header.Set("Accept-Encoding", "identity")
	}
	for name, value := range fields {
		request.Header.Set(name, value)
	}
	response, err := c.send(request)
	if err != nil {
		return nil, err
	}
	readRefusal(response)
	if err := t.checkPortal(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	t.keepCookies(response)
	return response, nil
}

// mostRefusal limits how much of a refusal is read, in bytes, to use its HTTP/1.1 connection
// again.
const mostRefusal = 4 << 10

// readRefusal reads a short refusal to its end. Otherwise net/http closes the HTTP/1.1 connection.
func readRefusal(response *http.Response) {
	if isReusable(response) {
		io.CopyN(io.Discard, response.Body, response.ContentLength)
	}
}

// isReusable reports whether a refusal's connection can be used again once it is read.
func isReusable(response *http.Response) bool {
	few := response.ContentLength >= 0 && response.ContentLength <= mostRefusal
	return response.ProtoMajor == 1 && !response.Close && response.StatusCode >= http.StatusBadRequest && few
}

// complete adds the header and the cookies of the target.
func (t Target) complete(request *http.Request) {
	maps.Copy(request.Header, t.Header)
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host // net/http ignores Host in the header.
		request.Header.Del("Host")
	}
	if t.Jar != nil {
		for _, cookie := range t.Jar.Cookies(t.URL) {
			request.AddCookie(cookie)
		}
	}
}

// keepCookies keeps the cookies of an answer.
func (t Target) keepCookies(response *http.Response) {
	if t.Jar != nil {
		t.Jar.SetCookies(t.URL, response.Cookies())
	}
}

func (c *Conn) send(request *http.Request) (*http.Response, error) {
	body := &readBody{conn: c}
	if c.backlog == nil {
		// HTTP/1.1 has several connections. One of them gets the request.
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { body.server = got.Conn.RemoteAddr() },
		}))
	} else {
		body.server = c.Socket.RemoteAddr()
		body.reader = &reader{backlog: c.backlog}
		// WroteHeaders is called before any other request is sent.
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
			WroteHeaders: func() { body.reader.sent(c.saver.newest) },
		}))
	}
	response, err := Paced(explaining{c}, request, c.Socket.Trial(), trialOf, true)
	if err != nil {
		if body.reader != nil {
			body.reader.leave()
		}
		return nil, printable.Error(err)
	}
	body.ReadCloser, response.Body = response.Body, body
	return response, nil
}

// explaining sends requests whose errors tell why their connection ended.
type explaining struct{ *Conn }

func (e explaining) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.http.RoundTrip(request)
	return response, e.explained(err)
}

// serverOf returns the address of the server that sent a response.
func serverOf(response *http.Response) string {
	if body, ok := response.Body.(*readBody); ok && body.server != nil {
		return body.server.String()
	}
	return ""
}

// from adds the address of the server to a MismatchError.
func from(response *http.Response, err error) error {
	if mismatch := new(MismatchError); errors.As(err, &mismatch) {
		mismatch.Server = serverOf(response)
	}
	return err
}

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

// exactBody is a body that must have a known length.
type exactBody struct {
	io.ReadCloser
	left quantity.Bytes
}

func (b *exactBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= quantity.Bytes(n)
	switch {
	case b.left < 0:
		return 0, ErrTooLong
	case err == io.EOF && b.left > 0:
		return n, fmt.Errorf("the response ended %d bytes before the end of the requested range", int64(b.left))
	}
	return n, err
}
