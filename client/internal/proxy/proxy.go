// Package proxy lets other programs use all links: as an HTTP or SOCKS5 proxy, or through URLs
// that begin with the proxy's URL.
package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	stdlog "log"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/socks"
	"github.com/linklab/linklab/client/internal/transfer"
)

// Options configures a proxy.
type Options struct {
	// Engine holds the options of all downloads.
	Engine download.Options
	// Window is the memory of one stream over several links.
	Window quantity.Bytes
	// Streams limits the number of streams at a time. Further requests use one link.
	Streams int
	// Allow lists the addresses of other machines that may use the proxy.
	Allow []netip.Prefix
	// Port is the TCP port of the proxy.
	Port int
	// Count, if set, receives the bytes that links receive outside the engine.
	Count func(link string, bytes quantity.Bytes)
	// NewRecorder, if set, returns a recorder for each download of the engine.
	NewRecorder func() transfer.Recorder
	Log         *slog.Logger
}

// Proxy is the HTTP handler.
type Proxy struct {
	Options
	name    string
	routes  *routes
	forward *httputil.ReverseProxy
	clients clients
	serving serving
	// associations has an element for each UDP association.
	associations chan struct{}
}

// bufferSize is the size of the copies to a client, in bytes.
const bufferSize = 128 << 10

// New returns a proxy. Its Serve may be called once.
func New(o Options) *Proxy {
	p := &Proxy{
		Options:      o,
		name:         "multilink-" + rand.Text(),
		serving:      serving{ending: make(chan struct{})},
		associations: make(chan struct{}, mostAssociations),
	}
	links := make([]transfer.Link, len(o.Engine.Links))
	for i, l := range o.Engine.Links {
		l.Dial = p.guarded(l.Dial)
		links[i] = l
	}
	p.Engine.Links, p.Engine.Log, p.Engine.Pool = links, o.Log, download.NewPool()
	p.routes = newRoutes(p.Engine, o.Count)
	p.forward = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: p.modify,
		Transport: &splitter{
			routes:  p.routes,
			engine:  p.Engine,
			window:  o.Window,
			streams: make(chan struct{}, o.Streams),
			newLog:  o.NewRecorder,
		},
		FlushInterval: -1,
		BufferPool:    &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}},
		ErrorHandler:  p.fail,
		ErrorLog:      stdlog.New(io.Discard, "", 0),
	}
	return p
}

// Serve serves the clients of a listener until ctx ends.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       p.clients.arrive,
		ConnState:         p.clients.changed,
		ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn),
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	err := server.Serve(&socks.Listener{Listener: listener, Serve: func(client *net.TCPConn, from io.Reader) {
		p.socks(ctx, client, from)
	}})
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	server.Close()
	p.close()
	return err
}

// close ends tunnels, and waits for the end of all requests. The HTTP server must be closed
// before, because it ends all other requests.
func (p *Proxy) close() {
	p.serving.end()
	p.clients.close()
	p.routes.close()
	p.Engine.Pool.Close()
}

// serving counts the requests that are being served.
type serving struct {
	mu       sync.Mutex
	requests sync.WaitGroup
	// ending is closed when tunnels must end.
	ending chan struct{}
}

// begin counts a request until done is called. It returns false after end: a request may arrive
// while the server is being closed.
func (s *serving) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ending:
		return false
	default:
		s.requests.Add(1)
		return true
	}
}

func (s *serving) done() { s.requests.Done() }

// atEnd calls end when the proxy ends, unless the returned function was called before.
func (s *serving) atEnd(end func()) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		select {
		case <-s.ending:
			end()
		case <-stopped:
		}
	}()
	return func() { close(stopped) }
}

// end ends tunnels, and waits for the end of all requests.
func (s *serving) end() {
	s.mu.Lock()
	close(s.ending)
	s.mu.Unlock()
	s.requests.Wait()
}

type buffers struct{ sync.Pool }

func (b *buffers) Get() []byte  { return b.Pool.Get().(*[bufferSize]byte)[:] }
func (b *buffers) Put(p []byte) { b.Pool.Put((*[bufferSize]byte)(p)) }

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.serving.begin() {
		return
	}
	defer p.serving.done()
	switch {
	case !p.mayUse(r.RemoteAddr):
		http.Error(w, "multilink: this proxy is not for "+r.RemoteAddr+": --allow says for whom it is", http.StatusForbidden)
	case p.hasPassed(r):
		http.Error(w, "multilink: "+errLoop.Error(), http.StatusLoopDetected)
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.IsAbs():
		if r.URL.User != nil && isWeb(r.URL) {
			http.Error(w, "multilink: the URL holds credentials, which the proxy does not take: send them in Authorization", http.StatusBadRequest)
			return
		}
		if !isWeb(r.URL) {
			http.Error(w, fmt.Sprintf("multilink: %s is not a URL to forward: allowed are http:// and https://", printable.Quote(credentials.Hide(r.URL.String()))), http.StatusBadRequest)
			return
		}
		p.pass(w, r)
	default:
		p.gateway(w, r)
	}
}

func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) {
	// An origin may answer before it has the whole request. Without full duplex the HTTP
	// server ends the request's body when the answer begins. The transport then ends the
	// answer, because it cannot read the body. HTTP/2 always has full duplex.
	_ = http.NewResponseController(w).EnableFullDuplex()
	if hasBody(r) {
		body := &requestBody{ReadCloser: r.Body}
		r = r.WithContext(context.WithValue(r.Context(), requestBodyKey{}, body))
		r.Body = body
	}
	p.forward.ServeHTTP(w, r)
}

func isWeb(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// rewrite changes a request before the origin gets it.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.Out.Host = r.Out.URL.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery // Unchanged, even if it is malformed.
	r.Out.Header.Add("Via", p.via(r.In.Proto))
	if _, ok := r.Out.Header["User-Agent"]; !ok {
		r.Out.Header["User-Agent"] = nil // Otherwise net/http adds its own.
	}
}

// modify changes an answer before the client gets it.
func (p *Proxy) modify(response *http.Response) error {
	response.Header.Add("Via", p.via(response.Proto))
	if response.StatusCode != http.StatusSwitchingProtocols {
		endEarly(response.Header, response.Request)
	}
	if by := visitOf(response.Request); by != nil {
		return by.modify(response)
	}
	if slices.ContainsFunc(challenges(response.Header), authenticatesConnection) {
		// Without this field clients must not answer (RFC 4559 6).
		response.Header.Add("Proxy-Support", "Session-Based-Authentication")
	}
	return nil
}

// fail answers a request that could not be forwarded.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // The client is gone.
	}
	p.Log.Warn("a request fails", "method", r.Method, "host", r.URL.Host, "error", err)
	status, wait := http.StatusBadGateway, link.Wait(err)
	switch {
	case errors.Is(err, errLoop):
		status = http.StatusLoopDetected
	case errors.As(err, new(*unboundError)):
		status = http.StatusForbidden
	case wait > 0:
		// The client should not ask again at once: the server fails, and gets few connections.
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	endEarly(w.Header(), r)
	http.Error(w, "multilink: "+printable.Lines(err.Error()), status)
}
