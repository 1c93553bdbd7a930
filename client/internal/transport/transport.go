// Package transport speaks HTTP to a server: HTTP/2 on one connection for each
// link, which no other link adopts (thesis 4.4.3.3: a link that
// changes its TCP connection starts from nothing), or HTTP/1.1 on a few.
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

// HTTP/2 receive windows in bytes. A stream must hold the bandwidth-delay
// product: three quarters of 16 MiB, which creditSaver always leaves, carry
// 500 Mbit/s at 200 ms. A connection holds several streams, and a client that
// writes what it receives straight to a file has no reason to hold the server
// back.
const (
	streamWindow     = 16 << 20
	connectionWindow = 1 << 30
)

// Conn leads to one server.
type Conn struct {
	http interface {
		http.RoundTripper
		Close() error
	}
	// usable reports whether new requests can be sent.
	usable func() bool
	// received counts all bytes that arrive.
	received *atomic.Int64
	// counter counts those of bodies; nil without HTTP/2.
	counter *dataCounter
	// delivered counts what was read of bodies.
	delivered atomic.Int64
	// saver and backlog are nil without HTTP/2.
	saver   *creditSaver
	backlog *backlog
	// cause is why an HTTP/2 connection is over; nil without HTTP/2.
	cause *endCause
	// unconditional says that the server answers If-Range with the whole.
	unconditional atomic.Bool
	// Protocol is what was agreed on, such as "TLS 1.3 h2".
	Protocol string
	// Socket is the network connection, or stands for all of them.
	Socket link.Socket
}

// Target is what is requested: a URL, and a header that is sent along.
type Target struct {
	URL    *url.URL
	Header http.Header
	// Jar, if set, has cookies to send, and gets those of answers.
	Jar http.CookieJar
	// Bare leaves out the fields that no server needs. Published figures were
	// measured without them, and they repeat to the byte only so.
	Bare bool
	// IsFile says that a web page would be somebody else's answer.
	IsFile bool
}

// Address is the TCP address of the server of an http or https URL.
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

// Open starts HTTP with the server of the URL u on a fresh network connection,
// which it closes on failure. It is HTTP/2 if the server of an https URL offers
// that, else HTTP/1.1, for which it may dial again. The oldest TLS is that of the
// configuration, else Go's.
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

	// The connection is already secure, so to net/http it is one without
	// TLS: only that way it takes a connection that is not a bare *tls.Conn.
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
		usable:   func() bool { return client.Err() == nil && !counter.goodbye.Load() },
		received: received,
		counter:  counter,
		saver:    saver,
		backlog:  backlog,
		cause:    cause,
		Protocol: protocol,
		Socket:   socket,
	}, nil
}

// secured shakes hands on a connection, which it closes on failure. What arrives
// over it is counted.
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

// Close closes the connection; requests in flight fail.
func (c *Conn) Close() error {
	if c.cause != nil {
		c.cause.is(errClosed, true)
	}
	return c.http.Close()
}

var errClosed = errors.New("the connection was closed by this side")

// Usable reports whether new requests can be sent: the connection is up and
// the server has not said goodbye. Where it allows no more requests at a time,
// one waits until another has ended.
func (c *Conn) Usable() bool { return c.usable() }

// Received is the number of bytes that arrived, of whatever kind.
func (c *Conn) Received() quantity.Bytes { return quantity.Bytes(c.received.Load()) }

// Unread is the number of bytes of bodies that arrived and were not read: of
// requests that were cancelled, or that are about to be read.
func (c *Conn) Unread() quantity.Bytes {
	if c.counter == nil {
		return 0
	}
	return quantity.Bytes(c.counter.data.Load() - c.delivered.Load())
}

// Ask asks the other end whether it is there: by a PING of HTTP/2 at once, else by TCP,
// as soon as that can. What answers is received, or acknowledged (see Answered).
func (c *Conn) Ask() error {
	if c.saver != nil {
		return c.saver.ping()
	}
	return c.Socket.Ask()
}

// AsksAtOnce reports whether Ask is not for TCP.
func (c *Conn) AsksAtOnce() bool { return c.saver != nil }

// Held reports whether the connection is not read because those who read
// bodies do not keep up.
func (c *Conn) Held() bool { return c.backlog != nil && c.backlog.isHeld() }

// Head asks what the target stands for.
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

// Peek asks by GET what the target stands for, for servers that do not answer
// HEAD.
func (c *Conn) Peek(ctx context.Context, t Target) (Resource, error) {
	fields := wantDigest(t)
	fields["Range"] = "bytes=0-0"
	response, err := c.do(ctx, http.MethodGet, t, fields)
	if err == nil && RefusesRanges(response.StatusCode) {
		// The first byte of an empty file cannot be had, and some serve no ranges.
		response.Body.Close()
		response, err = c.do(ctx, http.MethodGet, t, wantDigest(t))
	}
	if err != nil {
		return Resource{}, err
	}
	if response.StatusCode == http.StatusPartialContent {
		_, _ = io.CopyN(io.Discard, response.Body, 2) // So that the connection goes on.
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

// Begin requests a range of what the target stands for, of which nothing is known,
// and returns what that is and the body: as much of the range as there is.
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

// wantDigest are the fields that ask for the checksum of the whole.
func wantDigest(t Target) map[string]string {
	if t.Bare {
		return map[string]string{}
	}
	return map[string]string{"Want-Repr-Digest": "sha-256=5"}
}

// Get requests a range of the resource and returns its body once the header
// proves that it is the right one. Where the server sends less, the body asks for the
// rest. It fails if it is shorter or longer than the range.
func (c *Conn) Get(ctx context.Context, t Target, resource Resource, r ranges.Range) (io.ReadCloser, error) {
	response, err := c.get(ctx, t, resource, r)
	if err != nil {
		return nil, err
	}
	return c.all(ctx, t, resource, r, response)
}

// all returns the body of a range, of which the response brings the first bytes. On
// failure it closes that.
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
	return &pieces{body, part, rest, func(rest ranges.Range) (io.ReadCloser, ranges.Range, error) {
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

// get requests a range, if the server likes that with the condition that the file is
// still the same. Some answer that with the whole, though it is.
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

// Whole requests all of the resource, whose size may be unknown, without a
// range.
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

// Put sends a body as that part of what the target stands for, of that size in all
// (RFC 9110 14.5), or as the whole if the part is empty, and returns the answer's
// status, as a code and in the server's words. An answer's body is of no interest.
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
	t.learn(response)
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
		// Without it any coding would be acceptable (RFC 9110 12.5.3).
		request.Header.Set("Accept-Encoding", "identity")
	}
	for name, value := range fields {
		request.Header.Set(name, value)
	}
	response, err := c.send(request)
	if err != nil {
		return nil, err
	}
	keep(response)
	if err := t.checkPortal(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	t.learn(response)
	return response, nil
}

// mostKept is how much of a refusal is read, in bytes, so that its connection of
// HTTP/1.1 can be used again.
const mostKept = 4 << 10

// keep reads the words of a refusal, if they are few. Nobody wants them, but a
// connection of HTTP/1.1 ends with a body that was not read.
func keep(response *http.Response) {
	if isKept(response) {
		io.CopyN(io.Discard, response.Body, response.ContentLength)
	}
}

// isKept reports whether a refusal's connection can be used again once it is read.
func isKept(response *http.Response) bool {
	few := response.ContentLength >= 0 && response.ContentLength <= mostKept
	return response.ProtoMajor == 1 && !response.Close && response.StatusCode >= http.StatusBadRequest && few
}

// complete adds what is sent along.
func (t Target) complete(request *http.Request) {
	maps.Copy(request.Header, t.Header)
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host // net/http sends no other.
		request.Header.Del("Host")
	}
	if t.Jar != nil {
		for _, cookie := range t.Jar.Cookies(t.URL) {
			request.AddCookie(cookie)
		}
	}
}

// learn keeps the cookies of an answer.
func (t Target) learn(response *http.Response) {
	if t.Jar != nil {
		t.Jar.SetCookies(t.URL, response.Cookies())
	}
}

func (c *Conn) send(request *http.Request) (*http.Response, error) {
	body := &readBody{conn: c}
	if c.backlog == nil {
		// It has several connections, of which one gets the request.
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { body.server = got.Conn.RemoteAddr() },
		}))
	} else {
		body.server = c.Socket.RemoteAddr()
		body.reader = &reader{backlog: c.backlog}
		// It is called before anything else is sent.
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

// explaining sends requests whose errors say why their connection was over.
type explaining struct{ *Conn }

func (e explaining) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.http.RoundTrip(request)
	return response, e.explained(err)
}

// serverOf is the address that a response came from.
func serverOf(response *http.Response) string {
	if body, ok := response.Body.(*readBody); ok && body.server != nil {
		return body.server.String()
	}
	return ""
}

// from is the error with the address of who caused it, if that matters.
func from(response *http.Response, err error) error {
	if mismatch := new(MismatchError); errors.As(err, &mismatch) {
		mismatch.Server = serverOf(response)
	}
	return err
}

// explained is the error of a request, or why its connection was over before.
func (c *Conn) explained(err error) error {
	if c.cause == nil {
		return err
	}
	return c.cause.explained(err)
}

// Ended is why the connection takes no more requests, nil if that is not known.
func (c *Conn) Ended() error {
	if c.cause == nil {
		return nil
	}
	ended := c.cause.get()
	if ended == nil && !c.usable() && !c.counter.goodbye.Load() {
		ended = errBroken // Nothing ended it but net/http, which tells only requests in flight why.
	}
	return printable.Error(ended)
}

// meteredConn counts what it receives.
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
