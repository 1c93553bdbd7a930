package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/oddserver"
	"github.com/linklab/linklab/client/tests/testkit"
)

// mood is how the server serves a file at all times.
type mood string

const (
	// ranged files are served in ranges. They can always be downloaded.
	ranged mood = "ranged"
	// whole files are served only as a whole, sometimes without a length.
	whole mood = "whole"
	// turning files are first served in ranges, late, and then as a whole.
	turning mood = "turning"
	// fickle files are sometimes served as a whole instead of the requested range.
	fickle mood = "fickle"
	// strange files are served with one of the habits of oddserver.
	strange mood = "odd"
)

var moods = []mood{ranged, ranged, ranged, whole, turning, fickle, strange, strange}

// habits are those of strange files. They exclude servers with two files under one name, of which
// neither is the right one.
var habits = slices.DeleteFunc(slices.Clone(oddserver.Habits), func(h oddserver.Habit) bool { return h.Differs })

// limits are the values of MAX_CONCURRENT_STREAMS. Each connection gets one.
var limits = []int{1, 1, 2, 3, 10, 100}

// An answer is how a request is answered. answers holds how often each occurs.
type answer string

const (
	plain    answer = "plain"
	slow     answer = "slow"
	late     answer = "goodbye, late body"
	goodbye  answer = "goodbye"
	reset    answer = "reset of the stream"
	broken   answer = "reset of the connection"
	mute     answer = "no answer"
	stuck    answer = "no more after some bytes"
	frozen   answer = "nothing more on the connection"
	busy     answer = "503"
	unranged answer = "200 for 206"
)

// patience is how long the server may send nothing.
const patience = 40 * time.Second

var answers = []struct {
	answer
	weight int
}{
	{plain, 35}, {slow, 25}, {late, 6}, {goodbye, 8}, {reset, 8}, {broken, 5}, {mute, 3}, {stuck, 3}, {frozen, 2}, {busy, 4},
}

// hostile is a server for downloads and uploads. Its files are made when they are requested: a seed
// and a name determine content, size, mood, and the answer to the nth request.
type hostile struct {
	seed uint64
	// largest is the size of the largest file in bytes.
	largest int
	// slowest is the rate of slow answers in bytes per second.
	slowest float64
	blob    []byte
	servers []*http.Server
	doors   []*testkit.Listener
	// ca is a file with the server's authority.
	ca []byte

	mu sync.Mutex
	// odds holds the servers of strange files by path.
	odds map[string]*oddserver.Server
	// got holds the uploaded bytes that the server has confirmed.
	got      map[string][]byte
	asked    map[string]int
	answered map[answer]int
	// accepted counts connections, byQUIC those by QUIC, and asked3 requests by HTTP/3.
	accepted, byQUIC, asked3 int
	// open holds the connections of each client on each link. most is the largest number at a
	// time.
	open map[flow]map[connected]struct{}
	most map[flow]int
	// merged holds the clients that may use one address over both links.
	merged map[string]bool
}

// flow identifies a client's connections on a link: the port belongs to one client, and the
// addresses to one link. With merged they belong to both links.
type flow struct {
	client string
	from   string
	to     string
	merged bool
}

func newHostile(seed uint64, largest int, host string) *hostile {
	h := &hostile{
		seed: seed, largest: largest, slowest: float64(largest) / 8, blob: make([]byte, 2*largest+1),
		odds: map[string]*oddserver.Server{}, got: map[string][]byte{}, asked: map[string]int{}, answered: map[answer]int{},
		open: map[flow]map[connected]struct{}{}, most: map[flow]int{}, merged: map[string]bool{},
	}
	source := rand.NewChaCha8([32]byte{byte(seed)})
	source.Read(h.blob)
	certificate, _ := testkit.Certificate(host)
	h.ca = testkit.PEM(certificate)
	serve := func(limit int, protocols ...string) {
		config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: protocols}
		server := &http.Server{Handler: h, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
		server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c.(*tls.Conn).NetConn())
		}
		server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: limit}
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetHTTP2(protocols[0] == "h2")
		d := testkit.NewListener()
		h.servers, h.doors = append(h.servers, server), append(h.doors, d)
		go server.ServeTLS(d, "", "")
	}
	for _, limit := range limits {
		serve(limit, "h2", "http/1.1")
	}
	serve(0, "http/1.1")
	return h
}

func (h *hostile) close() {
	h.mu.Lock()
	for _, open := range h.open {
		for w := range open {
			w.end()
		}
	}
	h.mu.Unlock()
	for i, s := range h.servers {
		s.Close()
		h.doors[i].Close()
	}
}

// admit accepts the connections of a listener, which belongs to one client. Each connection is an
// HTTP/2 connection with some limit, or an HTTP/1.1 connection unless onlyHTTP2 is true.
func (h *hostile) admit(client string, l net.Listener, onlyHTTP2 bool) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.accepted++
		// The last kind is HTTP/1.1.
		kinds := len(h.doors) + 1
		if onlyHTTP2 {
			kinds = len(h.doors) - 1
		}
		kind := min(h.source("connection", h.accepted).IntN(kinds), len(h.doors)-1)
		w := h.watch(client, conn.(*net.TCPConn))
		h.mu.Unlock()
		if !h.doors[kind].Offer(w, nil) {
			w.Close()
			return
		}
	}
}

// watch counts a connection; h.mu is held.
func (h *hostile) watch(client string, conn *net.TCPConn) *watched {
	// A client that closes with unread bytes sends a RST, which nobody repeats if a link drops it. The
	// server would count the connection until it sends something, or for 15 s.
	conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second})
	w := &watched{TCPConn: conn, server: h, of: h.flowOf(client, conn), thawed: make(chan struct{})}
	w.thaw = sync.OnceFunc(func() { close(w.thawed) })
	h.count(w)
	return w
}

// flowOf returns the flow of a connection; h.mu is held.
func (h *hostile) flowOf(client string, conn interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}) flow {
	from, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	to, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	return flow{client, from, to, h.merged[client]}
}

// count counts a connection; h.mu is held.
func (h *hostile) count(one connected) {
	f := one.flow()
	if h.open[f] == nil {
		h.open[f] = map[connected]struct{}{}
	}
	h.open[f][one] = struct{}{}
	n := 0
	for other := range h.open[f] {
		if other.established() {
			n++
		}
	}
	h.most[f] = max(h.most[f], n)
}

// uncount forgets a connection that has ended.
func (h *hostile) uncount(one connected) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open[one.flow()], one)
}

// source returns a random source for the seed, a name and a number.
func (h *hostile) source(name string, n int) *rand.Rand {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s %d", name, n)
	return rand.New(rand.NewPCG(h.seed, sum.Sum64()))
}

// file returns the file with a path.
func (h *hostile) file(path string) (content []byte, m mood) {
	r := h.source(path, 0)
	size := 1 + r.IntN(h.largest)
	if r.IntN(4) == 0 {
		size = 1 + r.IntN(h.largest/100)
	}
	m = moods[r.IntN(len(moods))]
	begin := r.IntN(len(h.blob) - size)
	return h.blob[begin : begin+size], m
}

// draw decides the answer to the next request for a file.
func (h *hostile) draw(r *http.Request) (answer, *rand.Rand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[r.URL.Path]++
	if r.ProtoMajor == 3 {
		h.asked3++
	}
	n := h.asked[r.URL.Path]
	chance := h.source(r.URL.Path, n)
	_, m := h.file(r.URL.Path)
	a := plain
	weight := 0
	for _, w := range answers {
		weight += w.weight
	}
	drawn := chance.IntN(weight)
	for _, w := range answers {
		if drawn -= w.weight; drawn < 0 {
			a = w.answer
			break
		}
	}
	switch {
	case r.Method == http.MethodHead && (a == late || a == stuck || a == unranged):
		a = plain
	case r.Method == http.MethodHead:
	case m == fickle && chance.IntN(4) == 0:
		a = unranged
	case m == turning && h.asked["GET "+r.URL.Path] < 2: // One request of each link.
		a = late
	case m == turning:
		a = unranged
	}
	h.asked[r.Method+" "+r.URL.Path]++
	h.answered[a]++
	return a, chance
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, m := h.file(r.URL.Path)
	a, chance := h.draw(r)
	offer(w, r)
	lengthless := m == whole && len(content)%2 == 1
	w.Header().Set("ETag", `"`+r.URL.Path[1:]+`"`)
	if m == whole {
		r.Header.Del("Range")
		w = &edited{ResponseWriter: w, edit: func(header http.Header) {
			header.Del("Accept-Ranges")
			if lengthless {
				header.Del("Content-Length")
			}
		}}
	}
	// Some bytes precede the failure.
	some := 1 + chance.IntN(1+len(content)/2)
	send := func(w http.ResponseWriter) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
	if m == strange {
		w.Header().Del("ETag")
		send = func(w http.ResponseWriter) { h.odd(r.URL.Path, content).ServeHTTP(w, r) }
	}
	if r.Method == http.MethodPut {
		send = func(w http.ResponseWriter) { h.take(w, r, len(content), m == whole || a == unranged) }
	}
	gone := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	switch a {
	case plain:
		send(w)
	case slow, unranged:
		if a == unranged {
			r.Header.Del("Range")
		}
		send(&edited{ResponseWriter: w, rate: h.slowest * (1 + 9*chance.Float64())})
	case goodbye:
		sayGoodbye(w, r)
		send(w)
	case late:
		sayGoodbye(w, r)
		send(&edited{ResponseWriter: w, late: time.Duration(chance.IntN(1500)) * time.Millisecond})
	case reset:
		send(&edited{ResponseWriter: w, left: some})
		panic(http.ErrAbortHandler)
	case broken:
		send(&edited{ResponseWriter: w, left: some})
		connection(r).reset()
		panic(http.ErrAbortHandler)
	case mute:
		gone(patience)
		panic(http.ErrAbortHandler)
	case stuck:
		send(&edited{ResponseWriter: w, left: some})
		gone(patience)
		panic(http.ErrAbortHandler)
	case frozen:
		send(&edited{ResponseWriter: w, left: some})
		connection(r).freeze(patience)
		gone(patience)
		panic(http.ErrAbortHandler)
	case busy:
		w.Header().Set("Retry-After", strconv.Itoa(chance.IntN(2)))
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}
}

// sayGoodbye makes a connection take no more requests.
func sayGoodbye(w http.ResponseWriter, r *http.Request) {
	if c, ok := connection(r).(*quicConn); ok {
		c.goodbye()
		return
	}
	w.Header().Set("Connection", "close")
}

// odd returns the server of a strange file.
func (h *hostile) odd(path string, content []byte) http.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.odds[path] == nil {
		h.odds[path] = oddserver.New(content, oddserver.WithHabit(h.habit(path)))
	}
	return h.odds[path]
}

// habit returns the habit with which a strange file is served.
func (h *hostile) habit(path string) oddserver.Habit {
	return habits[h.source(path, -1).IntN(len(habits))]
}

// expect tells which file a client asks for next, over new connections. If the validators of the
// file vary, the client may use the address that answered first over both links.
func (h *hostile) expect(client, path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, m := h.file(path)
	h.merged[client] = m == strange && h.habit(path).Varies
}

// take stores an uploaded file, or a part of one if the server accepts parts. Like the answer, it
// reads late, slowly, or not to the end.
func (h *hostile) take(w http.ResponseWriter, r *http.Request, size int, whole bool) {
	first, last := 0, size-1
	if said := r.Header.Get("Content-Range"); said != "" {
		var of int
		if n, err := fmt.Sscanf(said, "bytes %d-%d/%d", &first, &last, &of); whole || n != 3 || err != nil || of != size || first > last || last >= size {
			http.Error(w, "no parts", refusals[size%len(refusals)])
			return
		}
	}
	e, _ := w.(*edited)
	if e == nil {
		e = &edited{}
	}
	body := make([]byte, last-first+1)
	if e.left > 0 {
		body = body[:min(len(body), e.left)]
	}
	for read := 0; read < len(body); {
		n, err := r.Body.Read(body[read : read+e.piece(len(body)-read)])
		if read += n; err != nil && read < len(body) {
			panic(http.ErrAbortHandler)
		}
	}
	if e.left > 0 {
		return // The rest fails.
	}
	time.Sleep(e.late) // This server is late.
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.got[r.URL.Path] == nil {
		h.got[r.URL.Path] = make([]byte, size)
	}
	copy(h.got[r.URL.Path][first:], body)
	w.WriteHeader(http.StatusCreated)
}

// refusals of Content-Range are 400 (RFC 9110 14.5), and what other servers answer.
var refusals = []int{http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusNotImplemented, http.StatusLengthRequired}

// uploaded returns what the server has of a file.
func (h *hostile) uploaded(path string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bytes.Clone(h.got[path])
}

// forget frees what the server has of a file that nobody asks for any more.
func (h *hostile) forget(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.got, path)
	delete(h.odds, path)
}

// edited is a changed answer.
type edited struct {
	http.ResponseWriter
	edit func(http.Header)
	// late is the delay between header and body.
	late time.Duration
	// rate limits the body in bytes per second, if set.
	rate float64
	// left is how many bytes of the body are sent, if set.
	left  int
	begun bool
}

func (e *edited) WriteHeader(code int) {
	if e.edit != nil {
		e.edit(e.Header())
	}
	e.ResponseWriter.WriteHeader(code)
}

func (e *edited) flush() {
	if inner, ok := e.ResponseWriter.(*edited); ok {
		inner.flush()
		return
	}
	e.ResponseWriter.(http.Flusher).Flush()
}

// piece returns how many of the bytes left may pass next, after the necessary wait.
func (e *edited) piece(left int) int {
	if e.rate == 0 {
		return left
	}
	n := min(left, 8<<10)
	time.Sleep(time.Duration(float64(n) / e.rate * 1e9)) // This server is slow.
	return n
}

func (e *edited) Write(p []byte) (int, error) {
	if !e.begun {
		e.begun = true
		if e.late > 0 {
			e.flush()
			time.Sleep(e.late) // And late.
		}
	}
	cut := e.left > 0 && e.left <= len(p)
	if cut {
		p = p[:e.left]
	}
	for sent := 0; sent < len(p); {
		n, err := e.ResponseWriter.Write(p[sent : sent+e.piece(len(p)-sent)])
		if sent += n; err != nil {
			return sent, err
		}
		if e.rate > 0 {
			e.flush()
		}
	}
	if e.left -= len(p); cut {
		e.flush()
		return len(p), io.ErrShortWrite
	}
	return len(p), nil
}

// watched is a connection that can be counted, reset and frozen.
type watched struct {
	*net.TCPConn
	server *hostile
	of     flow
	once   sync.Once

	mu     sync.Mutex
	ice    bool
	thawed chan struct{}
	thaw   func()
}

// connected is a connection, by TCP or QUIC.
type connected interface {
	flow() flow
	// established reports whether neither side has closed the connection.
	established() bool
	reset()
	freeze(time.Duration)
	end()
}

func (w *watched) flow() flow { return w.of }

func (w *watched) end() {
	w.TCPConn.Close()
	w.thaw()
}

// connection returns the connection of a request.
func connection(r *http.Request) connected { return r.Context().Value(connectionKey{}).(connected) }

type connectionKey struct{}

// tcpEstablished is a state of TCP_INFO (linux/net/tcp_states.h).
const tcpEstablished = 1

func (w *watched) established() bool {
	raw, err := w.SyscallConn()
	if err != nil {
		return false
	}
	up := false
	raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		up = err == nil && info.State == tcpEstablished
	})
	return up
}

func (w *watched) reset() {
	w.SetLinger(0)
	w.Close()
}

// freeze stops all traffic, and closes the connection after a while.
func (w *watched) freeze(d time.Duration) {
	w.mu.Lock()
	w.ice = true
	w.mu.Unlock()
	time.AfterFunc(d, func() { w.Close() })
}

func (w *watched) await() {
	w.mu.Lock()
	ice := w.ice
	w.mu.Unlock()
	if ice {
		<-w.thawed
	}
}

func (w *watched) Read(p []byte) (int, error) {
	w.await()
	return w.TCPConn.Read(p)
}

func (w *watched) Write(p []byte) (int, error) {
	w.await()
	return w.TCPConn.Write(p)
}

func (w *watched) Close() error {
	w.once.Do(func() {
		w.thaw()
		w.server.uncount(w)
	})
	return w.TCPConn.Close()
}

// listenIn listens in the network namespace of a process, or in this one for process 0.
func listenIn[L any](process int, listen func() (L, error)) (L, error) {
	if process == 0 {
		return listen()
	}
	type result struct {
		listener L
		error
	}
	done := make(chan result)
	go func() {
		// The thread stays locked, because it is in another namespace.
		runtime.LockOSThread()
		var r result
		fd, err := syscall.Open(fmt.Sprintf("/proc/%d/ns/net", process), syscall.O_RDONLY, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			syscall.Close(fd)
		}
		if r.error = err; err == nil {
			r.listener, r.error = listen()
		}
		done <- r
	}()
	r := <-done
	return r.listener, r.error
}

// counts returns how often each answer was given.
func (h *hostile) counts() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var said []string
	for _, a := range []answer{plain, slow, late, goodbye, reset, broken, mute, stuck, frozen, busy, unranged} {
		said = append(said, fmt.Sprintf("%s %d", a, h.answered[a]))
	}
	return fmt.Sprintf("%d connections, %d by QUIC with %d requests; %s", h.accepted, h.byQUIC, h.asked3, strings.Join(said, ", "))
}
