package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/tests/testkit"
)

// bomb answers with begin and then endlessly with then. It counts the bytes that it sends.
func bomb(t *testing.T, begin, then string) (address string, sent *atomic.Int64) {
	sent = new(atomic.Int64)
	return testkit.Accept(t, nil, func(conn net.Conn) {
		http.ReadRequest(bufio.NewReader(conn))
		_, err := io.WriteString(conn, begin)
		for piece := strings.Repeat(then, 100); err == nil && sent.Load() < 64<<20; sent.Add(int64(len(piece))) {
			_, err = io.WriteString(conn, piece)
		}
	}), sent
}

// A server's header, trailer and interim answers are limited, with and without a Got1xxResponse.
func TestHeadersAreBounded(t *testing.T) {
	line := "X: " + strings.Repeat("y", 1000) + "\r\n"
	for name, text := range map[string][2]string{
		"header":  {"HTTP/1.1 200 OK\r\n", line},
		"status":  {"HTTP/1.1 200 ", "OK"},
		"trailer": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", line},
		"1xx":     {"", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"},
	} {
		for _, hears := range []bool{false, true} {
			address, sent := bomb(t, text[0], text[1])
			by := Bounded()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if hears { // As httputil.ReverseProxy does.
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { return nil }})
			}
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
			response, err := Paced(by, request, nil, trialOf, true)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			// The kernel's buffers take some further megabytes.
			testkit.Holds(t, err != nil && ctx.Err() == nil && sent.Load() <= 16<<20, name, hears, err, sent.Load())
			cancel()
			by.CloseIdleConnections()
		}
	}
}

func TestHeadersOverHTTP2AreBounded(t *testing.T) {
	for _, where := range []string{"", http.TrailerPrefix} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if where != "" {
				io.WriteString(w, "x")
			}
			for i := range 1000 {
				w.Header().Set(fmt.Sprintf("%sX-%d", where, i), strings.Repeat("y", 1000))
			}
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		u, _ := url.Parse(server.URL)
		conn := connect(t, u, rootsOf(server))
		response, err := conn.do(t.Context(), http.MethodGet, Target{URL: u}, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		testkit.Holds(t, err != nil, where)
		conn.Close()
		server.Close()
	}
}

// connect opens a session with a server, over TLS if roots is not nil.
func connect(t *testing.T, u *url.URL, roots *x509.CertPool) *Conn {
	t.Helper()
	dial := func(ctx context.Context) (link.Socket, error) {
		return link.Dialer{Device: "lo"}.Dial(ctx, Address(u))
	}
	socket, err := dial(t.Context())
	testkit.OK(t, err)
	conn, err := Open(t.Context(), socket, dial, &tls.Config{RootCAs: roots}, nil, u)
	testkit.OK(t, err)
	return conn
}

// rootsOf returns the authority of a server.
func rootsOf(server *httptest.Server) *x509.CertPool {
	return server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
}

// One function makes all of net/http's transports to unknown servers.
func TestAllTransportsAreBounded(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		testkit.OK(t, err)
		own := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "transport/bounded.go")
		testkit.Holds(t, own || !strings.Contains(string(text), "http.Transport{") && !strings.Contains(string(text), "DefaultTransport"), name)
	}
}
