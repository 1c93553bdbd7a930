package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// net/http waits half a second before it closes a connection with an unread request.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// file is the payload of the tests.
var file = func() []byte {
	content := make([]byte, 6_000_000)
	rand.NewChaCha8([32]byte{5}).Read(content)
	return content
}()

// origin is a server that records its requests.
type origin struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	conns    []net.Conn
}

// serve starts an origin. Without a handler it answers with file.
func serve(t *testing.T, secure bool, handler http.HandlerFunc) *origin {
	t.Helper()
	return version{http2: true}.serveAs(t, secure, handler)
}

// version is a configuration in which a test runs.
type version struct {
	// http2 is true if a secure origin speaks HTTP/2.
	http2 bool
	// rescue is the engine's option. Without it the engine speaks only HTTP/2.
	rescue bool
}

func TestInAllVersions(t *testing.T) {
	for name, v := range map[string]version{"rescue": {true, true}, "rescue over HTTP 1": {false, true}, "no rescue": {true, false}} {
		for what, test := range map[string]func(*testing.T, version){
			"The gateway splits a file over links":        testTheGatewaySplitsAFileOverLinks,
			"Ranges of players":                           testRangesOfPlayers,
			"Small answers need one request":              testSmallAnswersNeedOneRequest,
			"A first range that does not end":             testAFirstRangeThatDoesNotEnd,
			"Back pressure":                               testBackPressure,
			"A client that hangs up ends the download":    testAClientThatHangsUpEndsTheDownload,
			"A file that changes breaks the stream":       testAFileThatChangesBreaksTheStream,
			"The first answer goes on over other links":   testTheFirstAnswerGoesOnOverOtherLinks,
			"Fields of a part are removed from the whole": testWhatHoldsForAPartIsNotSaidOfTheWhole,
		} {
			t.Run(name+", "+what, func(t *testing.T) { test(t, v) })
		}
	}
}

func (v version) serve(t *testing.T, handler http.HandlerFunc) *origin {
	t.Helper()
	return v.serveAs(t, true, handler)
}

func (v version) start(t *testing.T, o *origin, change func(*Options)) (address string, counts *sync.Map) {
	t.Helper()
	return start(t, o, func(o *Options) {
		o.Engine.Rescue = v.rescue
		if change != nil {
			change(o)
		}
	})
}

func (v version) serveAs(t *testing.T, secure bool, handler http.HandlerFunc) *origin {
	t.Helper()
	o := &origin{}
	if handler == nil {
		handler = content
	}
	o.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.requests = append(o.requests, r.Clone(context.Background()))
		o.mu.Unlock()
		handler(w, r)
	}))
	o.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	o.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.conns = append(o.conns, conn)
		return ctx
	}
	if secure {
		o.EnableHTTP2 = v.http2
		o.StartTLS()
	} else {
		o.Start()
	}
	t.Cleanup(o.Close)
	return o
}

func content(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"1"`)
	w.Header().Set("Content-Type", "video/x-test")
	http.ServeContent(w, r, "", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), bytes.NewReader(file))
}

// seen returns the requests so far.
func (o *origin) seen() []*http.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*http.Request(nil), o.requests...)
}

// ranges returns the number of range requests so far, without the first.
func (o *origin) ranges() (n int) {
	for _, r := range o.seen() {
		if r.Header.Get("Range") != "" {
			n++
		}
	}
	return n
}

// start starts a proxy over two links. Both use the loopback device.
func start(t *testing.T, o *origin, change func(*Options)) (address string, counts *sync.Map) {
	t.Helper()
	roots := x509.NewCertPool()
	if o != nil && o.Certificate() != nil {
		roots.AddCert(o.Certificate())
	}
	by := link.Dialer{Device: "lo"}
	counts = &sync.Map{}
	options := Options{
		Engine: download.Options{
			Links: []transfer.Link{
				{Name: "wifi", Device: "lo", Dial: by.Dial, Packets: by.Packets},
				{Name: "lte", Device: "lo", Dial: by.Dial, Packets: by.Packets},
			},
			Scheduler: schedule.Alg3{FirstRequests: 1e6, Padding: 0.1},
			Rescue:    true,
			GiveUp:    5 * time.Minute,
			Overlap:   0.6,
			Window:    time.Second,
			TLS:       &tls.Config{RootCAs: roots},
		},
		Window:  4 << 20,
		Streams: 4,
		Log:     slog.New(slog.DiscardHandler),
		Count: func(link string, n quantity.Bytes) {
			old, _ := counts.LoadOrStore(link, quantity.Bytes(0))
			counts.Store(link, old.(quantity.Bytes)+n)
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	options.Port = listener.Addr().(*net.TCPAddr).Port
	if change != nil {
		change(&options)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- New(options).Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), counts
}

// get sends a GET through the proxy's client and reads the answer.
func get(t *testing.T, client *http.Client, target string, header ...string) (*http.Response, []byte) {
	t.Helper()
	return do(t, client, http.MethodGet, target, nil, header...)
}

// expectFile is get, and fails unless the answer is the file.
func expectFile(t *testing.T, client *http.Client, target string, header ...string) *http.Response {
	t.Helper()
	response, got := get(t, client, target, header...)
	testkit.Holds(t, response.StatusCode == 200 && bytes.Equal(got, file), target, response.Status, len(got))
	return response
}

func do(t *testing.T, client *http.Client, method, target string, body io.Reader, header ...string) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequest(method, target, body)
	testkit.OK(t, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	testkit.OK(t, err)
	return response, readAll(t, response)
}

func readAll(t *testing.T, response *http.Response) []byte {
	t.Helper()
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v after %d bytes", response.Request.Method, response.Request.URL, err, len(got))
	}
	return got
}

// direct returns a client without a proxy, and through returns one with the proxy.
func direct(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func through(t *testing.T, address string) *http.Client {
	c := direct(t)
	c.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
	return c
}

func testTheGatewaySplitsAFileOverLinks(t *testing.T, v version) {
	o := v.serve(t, nil)
	address, _ := v.start(t, o, nil)
	response, got := get(t, direct(t), "http://"+address+"/"+o.URL+"/film.mkv?a=b;c", "Cookie", "secret=1", "Authorization", "Bearer x")
	if response.StatusCode != 200 || !bytes.Equal(got, file) || response.ContentLength != int64(len(file)) {
		t.Fatalf("%s, %d bytes, Content-Length %d", response.Status, len(got), response.ContentLength)
	}
	for name, want := range map[string]string{
		"Content-Type": "video/x-test", "ETag": `"1"`, "Accept-Ranges": "bytes", "Content-Range": "", "Content-Security-Policy": "sandbox",
	} {
		testkit.Same(t, response.Header.Get(name), want, name)
	}
	testkit.Holds(t, strings.Contains(response.Header.Get("Via"), "multilink-"), "the answer has no Via")
	addresses := map[string]bool{}
	for _, r := range o.seen() {
		addresses[r.RemoteAddr] = true
		if r.URL.Path != "/film.mkv" || r.URL.RawQuery != "a=b;c" || r.Header.Get("Authorization") != "Bearer x" ||
			r.Header.Get("Cookie") != "" || !strings.Contains(r.Header.Get("Via"), "multilink-") || r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("the origin got %s with %v", r.URL, r.Header)
		}
	}
	testkit.Holds(t, len(addresses) >= 3, len(addresses))
}

func TestTheProxySplitsAFileOverLinks(t *testing.T) {
	o := serve(t, false, nil)
	address, _ := start(t, o, nil)
	response, got := get(t, through(t, address), o.URL+"/film.mkv", "Cookie", "session=1")
	if response.StatusCode != 200 || !bytes.Equal(got, file) || response.Header.Get("Content-Security-Policy") != "" {
		t.Fatalf("%s, %d bytes", response.Status, len(got))
	}
	if n := o.ranges(); n < 3 {
		t.Errorf("%d range requests were made, want several", n)
	}
	for _, r := range o.seen() {
		testkit.Same(t, r.Header.Get("Cookie"), "session=1")
	}
}

func testRangesOfPlayers(t *testing.T, v version) {
	o := v.serve(t, nil)
	address, _ := v.start(t, o, nil)
	client := direct(t)
	size := len(file)
	for _, test := range []struct {
		header   []string
		status   int
		from, to int
	}{
		{[]string{"Range", "bytes=0-"}, 206, 0, size},
		{[]string{"Range", "bytes=4000000-"}, 206, 4_000_000, size},
		{[]string{"Range", "bytes=100-199"}, 206, 100, 200},
		{[]string{"Range", "bytes=1000-3000000"}, 206, 1000, 3_000_001},
		{[]string{"Range", "bytes=5900000-99999999"}, 206, 5_900_000, size},
		{[]string{"Range", "bytes=-1000"}, 206, size - 1000, size},
		{[]string{"Range", "bytes=-2000000"}, 206, size - 2_000_000, size},
		{[]string{"Range", "bytes=1000-", "If-Range", `"1"`}, 206, 1000, size},
		{[]string{"Range", "bytes=1000-", "If-Range", `"other"`}, 200, 0, size},
		{[]string{"Range", "apples=1-2"}, 416, 0, 0},
		{[]string{"Range", "bytes=7000000-"}, 416, 0, 0},
		{[]string{"If-None-Match", `"1"`}, 304, 0, 0},
		{[]string{"If-Match", `"2"`}, 412, 0, 0},
	} {
		response, got := get(t, client, "http://"+address+"/"+o.URL+"/film", test.header...)
		testkit.Same(t, response.StatusCode, test.status, test.header)
		if test.to == 0 {
			continue
		}
		testkit.SameList(t, got, file[test.from:test.to], test.header, test.to-test.from)
		contentRange := ""
		if test.status == 206 {
			contentRange = fmt.Sprintf("bytes %d-%d/%d", test.from, test.to-1, size)
		}
		testkit.Same(t, response.Header.Get("Content-Range"), contentRange, test.header)
	}
	response, got := get(t, client, "http://"+address+"/"+o.URL+"/film", "Range", "bytes=0-1,5-9")
	if response.StatusCode != 206 || !strings.HasPrefix(response.Header.Get("Content-Type"), "multipart/byteranges") || !bytes.Contains(got, file[5:10]) {
		t.Errorf("several ranges: %s %s", response.Status, response.Header.Get("Content-Type"))
	}
}

func TestOtherMethodsPass(t *testing.T) {
	o := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			content(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %d", r.Method, r.Header.Get("X-Test"), len(body))
	})
	address, counts := start(t, o, nil)
	client := through(t, address)
	if response, _ := do(t, client, http.MethodHead, o.URL+"/f", nil); response.StatusCode != 200 || response.ContentLength != int64(len(file)) || response.Header.Get("Accept-Ranges") != "bytes" {
		t.Errorf("HEAD: %s %v", response.Status, response.Header)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, "PROPFIND"} {
		response, got := do(t, client, method, o.URL+"/f", bytes.NewReader(file[:300_000]), "X-Test", "y")
		if want := method + " y 300000"; response.StatusCode != http.StatusTeapot || string(got) != want {
			t.Errorf("%s: %s %q", method, response.Status, got)
		}
	}
	if n, _ := counts.Load("wifi"); n == nil || n.(quantity.Bytes) == 0 {
		t.Error("what passed over the first link was not counted")
	}
}

// An answer that comes before the end of the request is complete. A request that is not read to its end costs
// its connection, and causes no panic. Bodies come with a length, and in chunks.
func TestARequestThatIsNotReadToItsEnd(t *testing.T) {
	o := serve(t, false, nil)
	var said testkit.Text
	address, _ := start(t, nil, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	client := through(t, address)
	for range 10 {
		for target, want := range map[string]int{o.URL + "/f": 200, "http://127.0.0.1:1/f": 502} {
			for _, size := range []int{4, 200_000} {
				for _, body := range []io.Reader{bytes.NewReader(file[:size]), io.LimitReader(bytes.NewReader(file), int64(size))} {
					response, got := do(t, client, http.MethodPost, target, body)
					testkit.Holds(t, response.StatusCode == want && (want != 200 || bytes.Equal(got, file)), target, size, response.Status, len(got))
				}
			}
		}
	}
	testkit.Holds(t, !strings.Contains(said.String(), "panic"), said.String())
}

// TestOddOrigins has the other servers whose answers cannot be split.
func TestAnAnswerWithLessThanItsRange(t *testing.T) {
	o := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-99/%d", len(file)))
			w.Header().Set("Content-Length", "50")
			w.WriteHeader(206)
			w.Write(file[:50])
			return
		}
		w.Write(file)
	})
	address, _ := start(t, o, nil)
	expectFile(t, direct(t), "http://"+address+"/"+o.URL+"/f")
}

// An answer that is not used gives its stream back.
func TestAnUnusedAnswerGivesItsStreamBack(t *testing.T) {
	o := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unproven" && r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusPartialContent) // It does not tell which bytes.
			return
		}
		content(w, r)
	})
	address, _ := start(t, o, func(o *Options) { o.Streams = 1 })
	for range 2 {
		expectFile(t, direct(t), "http://"+address+"/"+o.URL+"/unproven")
	}
	before := o.ranges()
	if _, got := get(t, direct(t), "http://"+address+"/"+o.URL+"/film"); !bytes.Equal(got, file) {
		t.Errorf("%d bytes", len(got))
	}
	if n := o.ranges() - before; n < 3 {
		t.Errorf("%d range requests were made, want several", n)
	}
}

func testSmallAnswersNeedOneRequest(t *testing.T, v version) {
	o := v.serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		size := map[string]int{"/empty": 0, "/one": 1, "/small": firstRange}[r.URL.Path]
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file[:size]))
	})
	address, _ := v.start(t, o, nil)
	for path, size := range map[string]int{"/one": 1, "/small": firstRange} {
		before := len(o.seen())
		if response, got := get(t, direct(t), "http://"+address+"/"+o.URL+path); response.StatusCode != 200 || !bytes.Equal(got, file[:size]) || response.ContentLength != int64(size) {
			t.Errorf("%s: %s, %d bytes", path, response.Status, len(got))
		}
		testkit.Same(t, len(o.seen())-before, 1, path)
	}
	if response, got := get(t, direct(t), "http://"+address+"/"+o.URL+"/empty"); response.StatusCode != 200 || len(got) != 0 {
		t.Errorf("an empty file: %s, %d bytes", response.Status, len(got))
	}
}

func TestRedirectsOfTheGatewayStayInIt(t *testing.T) {
	o := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Location", map[string]string{"/a": "/b?c", "/x": "https://other.example/y", "/m": "mailto:a@b.example"}[r.URL.Path])
		w.WriteHeader(http.StatusFound)
	})
	address, _ := start(t, o, nil)
	for path, want := range map[string]string{"/a": "/" + o.URL + "/b?c", "/x": "/anonymous/https://other.example/y", "/m": "mailto:a@b.example"} {
		response, _ := get(t, direct(t), "http://"+address+"/"+o.URL+path)
		if location := response.Header.Get("Location"); response.StatusCode != 302 || location != want || response.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %s to %q, want %q", path, response.Status, location, want)
		}
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	o := serve(t, true, nil)
	address, _ := start(t, o, func(o *Options) { o.Streams = 3 })
	var wg sync.WaitGroup
	for i := range 8 {
		client := direct(t)
		wg.Go(func() {
			from := i * 500_000
			response, got := get(t, client, "http://"+address+"/"+o.URL+"/f", "Range", fmt.Sprintf("bytes=%d-", from))
			testkit.Holds(t, response.StatusCode == 206 && bytes.Equal(got, file[from:]), i, response.Status, len(got))
		})
	}
	wg.Wait()
}

// A server that resets the stream of the first range after its last byte has sent all of it.
func testAFirstRangeThatDoesNotEnd(t *testing.T, v version) {
	o := v.serve(t, func(w http.ResponseWriter, r *http.Request) {
		content(w, r)
		if strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	address, _ := v.start(t, o, nil)
	expectFile(t, direct(t), "http://"+address+"/"+o.URL+"/f")
}

// A client that reads nothing pauses the download. The window limits what is requested.
func testBackPressure(t *testing.T, v version) {
	long := bytes.Repeat(file, 4)
	var mu sync.Mutex
	var highest int64
	o := v.serve(t, func(w http.ResponseWriter, r *http.Request) {
		var first, last int64
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
		mu.Lock()
		highest = max(highest, last+1)
		mu.Unlock()
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(long))
	})
	const window = 2 << 20
	address, _ := v.start(t, o, func(o *Options) { o.Window = window })
	conn, err := net.Dial("tcp", address)
	testkit.OK(t, err)
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	fmt.Fprintf(conn, "GET /%s/f HTTP/1.1\r\nHost: %s\r\n\r\n", o.URL, address)
	settled := func() (at int64) {
		for last := int64(-1); ; time.Sleep(300 * time.Millisecond) { // Far longer than a range takes.
			mu.Lock()
			at = highest
			mu.Unlock()
			if at == last && at > 0 {
				return at
			}
			last = at
		}
	}
	// The sockets to the client hold some bytes besides the window.
	const sockets = 7 << 20
	if at := settled(); at > firstRange+window+sockets {
		t.Errorf("bytes to %d were requested for a client that reads nothing", at)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.OK(t, err)
	if got, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(got, long) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func testAClientThatHangsUpEndsTheDownload(t *testing.T, v version) {
	o := v.serve(t, nil)
	address, _ := v.start(t, o, nil)
	for _, read := range []int64{0, 1000, firstRange + 1_000_000} {
		ctx, cancel := context.WithCancel(t.Context())
		request, _ := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/"+o.URL+"/f", nil)
		response, err := direct(t).Do(request)
		testkit.OK(t, err)
		if _, err := io.CopyN(io.Discard, response.Body, read); err != nil {
			t.Error(err)
		}
		cancel()
		response.Body.Close()
	}
	// The proxy's Close waits for all requests. goleak checks the rest.
}

func testAFileThatChangesBreaksTheStream(t *testing.T, v version) {
	var requests sync.Map
	o := v.serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, later := requests.LoadOrStore("first", true)
		w.Header().Set("ETag", map[bool]string{false: `"1"`, true: `"2"`}[later])
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
	})
	address, _ := v.start(t, o, nil)
	response, err := direct(t).Get("http://" + address + "/" + o.URL + "/f")
	testkit.OK(t, err)
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	testkit.Holds(t, err != nil && bytes.Equal(got, file[:len(got)]) && len(got) <= firstRange, len(got), err)
}

// If the link of the first answer fails or falls silent, the engine delivers the rest.
func testTheFirstAnswerGoesOnOverOtherLinks(t *testing.T, v version) {
	t.Parallel()
	t.Run("broken", func(t *testing.T) { testFirstAnswer(t, v, func(*http.Request) { panic(http.ErrAbortHandler) }) })
	t.Run("silent", func(t *testing.T) { testFirstAnswer(t, v, func(r *http.Request) { <-r.Context().Done() }) })
}

func testFirstAnswer(t *testing.T, v version, end func(*http.Request)) {
	var once sync.Once
	o := v.serve(t, func(w http.ResponseWriter, r *http.Request) {
		broken := false
		once.Do(func() { broken = true })
		if !broken {
			content(w, r)
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Format(http.TimeFormat))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", firstRange-1, len(file)))
		w.WriteHeader(206)
		w.Write(file[:100_000])
		w.(http.Flusher).Flush()
		end(r)
	})
	address, _ := v.start(t, o, nil)
	expectFile(t, direct(t), "http://"+address+"/"+o.URL+"/f")
}

func TestTunnels(t *testing.T) {
	o := serve(t, true, nil)
	address, counts := start(t, o, nil)
	client := through(t, address)
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(o.Certificate())
	if response, got := get(t, client, o.URL+"/f"); response.StatusCode != 200 || !bytes.Equal(got, file) || response.Header.Get("Via") != "" {
		t.Errorf("%s, %d bytes", response.Status, len(got))
	}
	client.CloseIdleConnections()
	if n, _ := counts.Load("wifi"); n == nil || n.(quantity.Bytes) < quantity.Bytes(len(file)) {
		t.Errorf("%v bytes were counted", n)
	}
	for target, want := range map[string]string{
		"mail.example:25": "403 Forbidden", "noport": "403 Forbidden", "127.0.0.1:1025": "502 Bad Gateway", address: "508 Loop Detected",
	} {
		testkit.Same(t, connect(t, address, target), want, target)
	}
}

// connect returns the status of a CONNECT request.
func connect(t *testing.T, address, target string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	testkit.OK(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.OK(t, err)
	response.Body.Close()
	return response.Status
}

func TestRefusals(t *testing.T) {
	o := serve(t, false, nil)
	address, _ := start(t, nil, nil)
	_, port, _ := net.SplitHostPort(address)
	client := direct(t)
	for _, test := range []struct {
		target string
		header []string
		host   string
		status int
		want   string
	}{
		{"/", nil, "", 404, "/https://HOST/PATH"},
		{"/film.mkv", nil, "", 404, "/https://HOST/PATH"},
		{"/ftp://host/f", nil, "", 404, ""},
		{"/https:///f", nil, "", 404, ""},
		{"/" + o.URL + "/f", nil, "evil.example:" + port, 421, `"evil.example:` + port + `" is not this proxy`},
		{"/" + o.URL + "/f", nil, "localhost:" + port, 200, ""},
		{"/" + o.URL + "/f", []string{"Sec-Fetch-Site", "cross-site"}, "", 403, "not for pages of other sites"},
		{"/http://user:pw@host/f", nil, "", 400, "the URL holds credentials"},
		{"/http://" + address + "/http://host/", nil, "", 508, "leads back to this proxy"},
		{"/http://localhost:" + port + "/", nil, "", 508, "leads back to this proxy"},
		{"/http://127.0.0.1:1/f", nil, "", 502, "connection refused"},
		{"/http:/" + strings.TrimPrefix(o.URL, "http://") + "/f", nil, "", 200, ""},
	} {
		request, _ := http.NewRequest("GET", "http://"+address+test.target, nil)
		request.Host = test.host
		for i := 0; i < len(test.header); i += 2 {
			request.Header.Set(test.header[i], test.header[i+1])
		}
		response, err := client.Do(request)
		testkit.OK(t, err)
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != test.status || !strings.Contains(string(text[:min(len(text), 1000)]), test.want) {
			t.Errorf("%s %s: %s %.200q, want %d and %q", test.target, test.host, response.Status, text, test.status, test.want)
		}
	}
	// This client uses the proxy to reach the proxy itself.
	if response, got := get(t, through(t, address), "http://"+address+"/x"); response.StatusCode != 508 {
		t.Errorf("itself through itself: %s %q", response.Status, got)
	}
	conn, err := net.Dial("tcp", address)
	testkit.OK(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET ftp://host/f HTTP/1.1\r\nHost: host\r\n\r\n")
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != 400 {
		t.Errorf("ftp: %v %v", response, err)
	}
}

func TestWhoMayUseTheProxy(t *testing.T) {
	p := New(Options{Allow: []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24"), netip.MustParsePrefix("fd00::/8")}, Log: slog.New(slog.DiscardHandler)})
	defer p.close()
	for remote, want := range map[string]bool{
		"127.0.0.1:99": true, "[::1]:99": true, "[::ffff:127.0.0.1]:99": true,
		"192.168.1.77:99": true, "[::ffff:192.168.1.77]:99": true, "[fd00::1]:99": true,
		"192.168.2.1:99": false, "8.8.8.8:99": false, "[2001:db8::1]:99": false, "": false,
	} {
		testkit.Same(t, p.mayUse(remote), want, remote)
		r := httptest.NewRequest("GET", "http://h/f", nil)
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		if !want {
			if p.ServeHTTP(w, r); w.Code != 403 {
				t.Errorf("%q gets %d", remote, w.Code)
			}
		}
	}
}

// A request that was never sent may be sent over another link, whatever its method.
func TestALinkThatCanNotConnectIsLeftOut(t *testing.T) {
	o := serve(t, false, nil)
	var tries atomic.Int32
	address, counts := start(t, o, func(o *Options) {
		o.Engine.Links[0].Dial = func(ctx context.Context, address string) (link.Socket, error) {
			tries.Add(1)
			return unreachable(ctx, address)
		}
	})
	client := through(t, address)
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodHead} {
		if response, _ := do(t, client, method, o.URL+"/f", strings.NewReader("body")); response.StatusCode != 200 {
			t.Errorf("%s: %s", method, response.Status)
		}
	}
	if n, _ := counts.Load("lte"); n == nil || n.(quantity.Bytes) == 0 {
		t.Error("the other link was not used")
	}
	testkit.Same(t, tries.Load(), 1)
}

// unreachable is the dial of a link that cannot connect.
func unreachable(context.Context, string) (link.Socket, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("network is unreachable")}
}
