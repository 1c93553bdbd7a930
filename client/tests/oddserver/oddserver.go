// Package oddserver is a server with habits: odd things that real servers do. A client must get the
// right file all the same.
package oddserver

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Habit is an odd thing that servers do.
type Habit struct {
	Name string
	// Does describes the habit in a few words.
	Does string
	// serve answers a request for the file.
	serve func(*exchange)
	// Differs is true if the server has two files of the same size under one name.
	Differs bool
	// Varies is true if the validators of one file vary. A client may then use one address of
	// the server over all its links.
	Varies bool
}

// Find returns the habit with that name.
func Find(name string) (Habit, bool) {
	i := slices.IndexFunc(Habits, func(h Habit) bool { return h.Name == name })
	if i < 0 {
		return Habit{}, false
	}
	return Habits[i], true
}

// Server serves one file under all paths. The first part of a path selects the habit, as in
// /403-ranges/file, unless an option sets one habit for all paths.
type Server struct {
	content []byte
	// other is another file of the same size.
	other func() []byte
	fixed *Habit
	rate  int

	mu    sync.Mutex
	asked map[string]int
}

// An Option changes a server.
type Option func(*Server)

// WithHabit sets one habit for all paths.
func WithHabit(h Habit) Option { return func(s *Server) { s.fixed = &h } }

// WithRate limits each answer, in bytes per second.
func WithRate(bytesPerSecond int) Option { return func(s *Server) { s.rate = bytesPerSecond } }

// New returns a handler that serves the content.
func New(content []byte, options ...Option) *Server {
	s := &Server{content: content, asked: map[string]int{}}
	s.other = sync.OnceValue(func() []byte {
		other := bytes.Clone(content)
		for i := range other {
			other[i] ^= 0x55
		}
		return other
	})
	for _, option := range options {
		option(s)
	}
	return s
}

// Is reports whether a client has a file that it may get with a habit, and no mixture of two.
func (s *Server) Is(h Habit, got []byte) bool {
	return bytes.Equal(got, s.content) || h.Differs && bytes.Equal(got, s.other())
}

// Asked returns the number of requests for a path.
func (s *Server) Asked(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	habit := s.fixed
	if habit == nil {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		found, ok := Find(name)
		if !ok {
			http.Error(w, "the path begins with no habit", http.StatusNotFound)
			return
		}
		habit = &found
	}
	s.mu.Lock()
	s.asked[r.URL.Path]++
	x := &exchange{server: s, w: w, r: r, content: s.content, asked: s.asked[r.URL.Path], etag: `"odd"`, modified: modified}
	s.mu.Unlock()
	if s.rate > 0 {
		x.w = &paced{w, s.rate}
	}
	habit.serve(x)
}

// modified is the date of the file.
var modified = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// exchange is a request and its answer.
type exchange struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	content []byte
	// asked is the number of requests for the path, including this one.
	asked int
	// etag and modified are the validators. A zero value is not sent.
	etag     string
	modified time.Time
}

// validators sets the validators in the header.
func (x *exchange) validators() {
	if x.etag != "" {
		x.w.Header().Set("ETag", x.etag)
	}
	if !x.modified.IsZero() {
		x.w.Header().Set("Last-Modified", x.modified.UTC().Format(http.TimeFormat))
	}
	x.w.Header().Set("Content-Type", "application/octet-stream")
}

// plain answers correctly.
func (x *exchange) plain() {
	x.validators()
	http.ServeContent(x.w, x.r, "", x.modified, bytes.NewReader(x.content))
}

// whole answers with the whole file to any request.
func (x *exchange) whole(status int) { x.send(status, 0, len(x.content)-1) }

// part answers with bytes first to last.
func (x *exchange) part(first, last int) {
	x.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(x.content)))
	x.send(http.StatusPartialContent, first, last)
}

// send sends bytes first to last with the present header.
func (x *exchange) send(status, first, last int) {
	x.validators()
	x.w.Header().Set("Content-Length", strconv.Itoa(last-first+1))
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(x.content[first : last+1])
	}
}

// span returns the requested range, if the request is a GET for one valid range.
func (x *exchange) span() (first, last int, ok bool) {
	if condition := x.r.Header.Get("If-Range"); condition != "" && condition != x.etag || x.r.Method != http.MethodGet {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(strings.TrimPrefix(x.r.Header.Get("Range"), "bytes="), "-")
	first, err := strconv.Atoi(from)
	if err != nil || first >= len(x.content) {
		return 0, 0, false
	}
	last = len(x.content) - 1
	if end, err := strconv.Atoi(to); err == nil {
		last = min(end, last)
	}
	return first, last, first <= last
}

// overRanges handles requests for a range by answer, and others correctly.
func overRanges(answer func(x *exchange, first, last int)) func(*exchange) {
	return func(x *exchange) {
		if first, last, ok := x.span(); ok {
			answer(x, first, last)
			return
		}
		x.plain()
	}
}

// refuse refuses a request.
func (x *exchange) refuse(status int) { http.Error(x.w, "odd", status) }

// address returns the last number of the server's address that got the request.
func (x *exchange) address() int {
	var local net.IP
	switch at := x.r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		local = at.IP
	case *net.UDPAddr:
		local = at.IP
	}
	if len(local) == 0 {
		return 0
	}
	return int(local[len(local)-1])
}

// paced is an answer with a limited rate.
type paced struct {
	http.ResponseWriter
	rate int
}

func (p *paced) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		piece := b[n:min(len(b), n+16<<10)]
		time.Sleep(time.Duration(float64(len(piece)) / float64(p.rate) * 1e9))
		var m int
		m, err = p.ResponseWriter.Write(piece)
		n += m
		_ = http.NewResponseController(p.ResponseWriter).Flush()
	}
	return n, err
}

// The protocols of Start.
const (
	HTTP2 = "h2"
	HTTP1 = "http/1.1"
	// Plain is HTTP/1.1 without TLS.
	Plain = "http"
	// HTTP3 is served beside HTTP/2, which offers it (Alt-Svc).
	HTTP3 = "h3"
)

// Start serves on addresses, as HOST or HOST:PORT, on the port of the first one. Its certificate is for
// example.com and 127.0.0.1, and is its own authority.
func (s *Server) Start(protocol string, addresses ...string) (*httptest.Server, error) {
	server := httptest.NewUnstartedServer(s)
	listeners, err := listen(addresses)
	if err != nil {
		return nil, err
	}
	server.Listener.Close()
	all := newGroup(listeners)
	server.Listener = all
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if protocol == Plain {
		server.Start()
		return server, nil
	}
	server.EnableHTTP2 = protocol == HTTP2 || protocol == HTTP3
	server.StartTLS()
	if protocol == HTTP3 {
		_, port, _ := net.SplitHostPort(all.Addr().String())
		server.Config.Handler = offering{s, `h3=":` + port + `"`}
		if err := s.serveHTTP3(all, server.TLS); err != nil {
			server.Close()
			return nil, err
		}
	}
	return server, nil
}

// offering is a handler whose answers have the field Alt-Svc.
type offering struct {
	http.Handler
	alternative string
}

func (o offering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Alt-Svc", o.alternative)
	o.Handler.ServeHTTP(w, r)
}
