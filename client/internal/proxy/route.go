package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// route sends requests over one link. It keeps connections for a while.
type route struct {
	transfer.Link
	transport *http.Transport
	pending   pending

	// routes.mu guards the fields below.

	// rate is the highest throughput in the last download.
	rate quantity.Rate
	// failed is the time of the last failed connection over the link.
	failed time.Time
}

// failureMemory is how long a link that failed is tried last. idleTime is how long an idle
// connection is kept.
const (
	failureMemory = 10 * time.Second
	idleTime      = 90 * time.Second
)

// dialTimeout limits how long a link may take to connect before another link is tried, and
// handshakeTimeout how long a TLS handshake may take.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 10 * time.Second
)

// silence is how long the other end's kernel may leave a request unacknowledged. By then TCP
// has sent the request three to five times. A kept connection over a dead link gives no other
// sign for many minutes. A slow server has acknowledged the request, so the proxy waits for it.
const silence = 3 * time.Second

var errSilent = errors.New("the connection is dead: nothing was acknowledged for " + silence.String())

// dialSoon connects over a link. If the Pacer asks to wait, it waits and tries again.
func dialSoon(ctx context.Context, l transfer.Link, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	until, _ := ctx.Deadline()
	for {
		conn, err := l.Dial(ctx, address)
		wait := link.Wait(err)
		if err == nil {
			return conn, nil
		}
		if wait == 0 || wait > time.Until(until) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// routes holds the links. Each link can carry any request.
type routes struct {
	mu  sync.Mutex
	all []*route
	// isPinned is true if these routes serve one client, over one connection in all.
	isPinned bool
	tls      *tls.Config
	hellos   *transport.Hellos
	// count, if set, receives the bytes that links receive.
	count func(link string, bytes quantity.Bytes)
	log   *slog.Logger
	// patience is how long the beginning of an answer may take, 0 for no limit.
	patience time.Duration
}

func newRoutes(o download.Options, count func(string, quantity.Bytes)) *routes {
	r := &routes{tls: o.TLS, hellos: o.Hellos, count: count, log: o.Log, patience: o.GiveUp}
	for _, l := range o.Links {
		r.all = append(r.all, r.route(l))
	}
	return r
}

// newPinned returns routes over the same links for one client, in the present order.
func (r *routes) newPinned() *routes {
	own := &routes{isPinned: true, tls: r.tls, hellos: r.hellos, count: r.count, log: r.log, patience: r.patience}
	for _, route := range r.best() {
		own.all = append(own.all, own.route(route.Link))
	}
	return own
}

func (r *routes) route(l transfer.Link) *route {
	by := transport.Bounded()
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dialSoon(ctx, l, address)
		if err != nil {
			return nil, err
		}
		if own, ok := below[*link.Conn](conn); ok {
			if err := own.AskSoon(dialTimeout); err != nil {
				conn.Close()
				return nil, err
			}
		}
		return conn, nil
	}
	by.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return transport.NewMendedConn(conn), nil
	}
	config := r.tls.Clone()
	if config.NextProtos = []string{"http/1.1"}; !r.isPinned {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	by.DialTLSContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		dialled := func(ctx context.Context) (net.Conn, error) { return dial(ctx, address) }
		secure, err := transport.Secure(ctx, dialled, config, r.hellos, address, handshakeTimeout)
		switch {
		case err != nil:
			return nil, err
		case secure.ConnectionState().NegotiatedProtocol == "h2":
			return secure, nil
		}
		return transport.NewMendedConn(secure), nil
	}
	by.IdleConnTimeout = idleTime
	by.ResponseHeaderTimeout = r.patience
	by.Protocols = new(http.Protocols)
	by.Protocols.SetHTTP1(true)
	if r.isPinned {
		by.MaxConnsPerHost = 1
	} else {
		by.MaxIdleConnsPerHost = 4
		by.Protocols.SetHTTP2(true)
	}
	return &route{Link: l, transport: by}
}

// best returns the links in the order in which to try them: links without a recent failure
// first, the fastest first. Before anything is known, the user's order stays.
func (r *routes) best() []*route {
	r.mu.Lock()
	defer r.mu.Unlock()
	ordered := slices.Clone(r.all)
	slices.SortStableFunc(ordered, func(a, b *route) int {
		aFailed, bFailed := time.Since(a.failed) < failureMemory, time.Since(b.failed) < failureMemory
		switch {
		case aFailed != bFailed && aFailed:
			return 1
		case aFailed != bFailed:
			return -1
		case a.rate > b.rate:
			return -1
		case a.rate < b.rate:
			return 1
		}
		return 0
	})
	return ordered
}

// learn records the rates that a download measured.
func (r *routes) learn(s rundir.Summary) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, route := range r.all {
		if l := s.Links[route.Name]; l.Peak > 0 {
			route.rate = l.Peak
		}
	}
}

// settle keeps one client's requests on the link of its connection.
func (r *routes) settle(on *route) {
	if r.isPinned {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = []*route{on}
	}
}

func (r *routes) fail(failed *route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed.failed = time.Now()
}

// RoundTrip sends a request over the best link. It uses the next link if the best cannot connect,
// or does not answer a request that may be repeated.
func (r *routes) RoundTrip(request *http.Request) (*http.Response, error) {
	response, _, err := r.send(request)
	return response, err
}

func (r *routes) send(request *http.Request) (response *http.Response, by *route, err error) {
	if hasBody(request) {
		// A transport that cannot connect closes the body, and the next one needs the body.
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(request.Body)
	}
	var failures []error
	order := r.best()
	links := len(order)
	for i := 0; i < len(order); i++ {
		route := order[i]
		response, err := r.try(route, request)
		if err == nil {
			r.settle(route)
			return response, route, nil
		}
		if errors.Is(err, errSilent) && i < links {
			// The link may be back without its old connections.
			route.transport.CloseIdleConnections()
			order = append(order, route)
		}
		failures = append(failures, &linkError{route.Name, err})
		if request.Context().Err() != nil {
			return nil, nil, context.Cause(request.Context())
		}
		r.fail(route)
		if !mayRepeat(request, err) {
			break
		}
	}
	return nil, nil, errors.Join(failures...)
}

// try sends a request over one link. A request that may be repeated fails with errSilent if its
// connection is dead.
func (r *routes) try(route *route, request *http.Request) (*http.Response, error) {
	if !mayRepeat(request, nil) {
		return r.over(route, request)
	}
	// Without an error the context must stay alive, because the answer's body needs it.
	ctx, cancel := context.WithCancelCause(request.Context())
	answered := make(chan struct{})
	defer close(answered)
	response, err := r.over(route, request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			if conn, ok := below[*link.Conn](got.Conn); ok {
				go watch(conn, answered, func() { cancel(errSilent) })
			}
		},
	})))
	if err != nil {
		if context.Cause(ctx) == errSilent {
			err = errSilent
		}
		cancel(err)
	}
	return response, err
}

// watch calls dead if the connection falls silent before the answer.
func watch(conn *link.Conn, answered <-chan struct{}, dead func()) {
	const interval = silence / 3
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	heard := time.Now()
	for time.Since(heard) < silence {
		select {
		case <-answered:
			return
		case <-ticker.C:
		}
		ago, all, err := conn.Answered()
		if err != nil {
			return // The connection is closed. The transport notices.
		}
		if all || ago < interval {
			heard = time.Now()
		}
	}
	dead()
}

// over sends a request over one link.
func (r *routes) over(route *route, request *http.Request) (*http.Response, error) {
	request, done := route.pending.follow(request)
	response, err := guardEnd(route.transport, request, r.log)
	if err == nil {
		r.hellos.Heard(request.URL, response.Header)
	}
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		done()
	} else {
		response.Body = &pendingBody{response.Body, done}
	}
	if err == nil && r.count != nil && response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = &countedBody{response.Body, route.Name, r.count}
	}
	return response, err
}

// dial connects over the best link that can connect. The Pacer counts each connection as useful,
// because the client decides how many it needs, what they carry, and what their ends mean.
func (r *routes) dial(ctx context.Context, address string) (conn net.Conn, by *route, err error) {
	var failures []error
	for _, route := range r.best() {
		conn, err := dialSoon(ctx, route.Link, address)
		if err == nil {
			trialOf(conn).Release()
			return conn, route, nil
		}
		failures = append(failures, &linkError{route.Name, err})
		if ctx.Err() != nil {
			break
		}
		r.fail(route)
	}
	return nil, nil, errors.Join(failures...)
}

func (r *routes) close() {
	for _, route := range r.best() {
		route.transport.CloseIdleConnections()
	}
}

// mayRepeat reports whether a failed request may be sent again: it was certainly not sent, or it
// only reads.
func mayRepeat(request *http.Request, err error) bool {
	if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" || link.Wait(err) > 0 {
		return true
	}
	// A part of a body may have been read.
	isData := request.Method == http.MethodGet || request.Method == http.MethodHead || request.Method == http.MethodOptions
	return isData && !hasBody(request)
}

func hasBody(request *http.Request) bool { return request.Body != nil && request.Body != http.NoBody }

// linkError adds the link to an error.
type linkError struct {
	link string
	err  error
}

func (e *linkError) Error() string { return "link " + e.link + ": " + e.err.Error() }
func (e *linkError) Unwrap() error { return e.err }

// countedBody counts the bytes that are read of a body.
type countedBody struct {
	io.ReadCloser
	link  string
	count func(link string, bytes quantity.Bytes)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count(b.link, quantity.Bytes(n))
	return n, err
}
