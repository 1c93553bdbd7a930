package cli

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// bothWays answers GET and accepts PUT.
func bothWays(into io.WriterAt) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			content(w, r)
			return
		}
		var first int64
		_, _ = fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-", &first)
		if _, err := io.Copy(io.NewOffsetWriter(into, first), r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// Every command reaches every server that Go's TLS reaches.
func TestEveryCommandReachesTLS12(t *testing.T) {
	for _, protocols := range [][]string{{"h2", "http/1.1"}, {"http/1.1"}} {
		t.Run(strings.Join(protocols, ","), func(t *testing.T) {
			got, err := os.Create(filepath.Join(t.TempDir(), "put"))
			testkit.OK(t, err)
			defer got.Close()
			url, flags := serveTLS(t, bothWays(got), true, &tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: protocols})
			flags = append(flags, "--link", "wifi=lo", "--link", "lte=lo")
			own := written(t, filepath.Join(t.TempDir(), "own"), file)
			algorithms := []string{"adaptive"}
			if protocols[0] == "h2" { // Published algorithms use only HTTP/2.
				algorithms = append(algorithms, "alg3")
			}
			for _, algorithm := range algorithms {
				expectFile(t, append(flags, url, "--algorithm", algorithm)...)
			}
			code, _, stderr := run(append([]string{"put", own, url}, flags...)...)
			if sent, err := os.ReadFile(got.Name()); code != 0 || err != nil || !bytes.Equal(sent, file) {
				t.Errorf("put: exit code %d, stderr %q", code, stderr)
			}
			code, _, stderr = run(append([]string{"probe", "--server", url, "--run-dir", t.TempDir(), "--time", "1s"}, flags...)...)
			testkit.Same(t, code, 0, stderr)
			proxy := startProxy(t, flags...)
			response, err := http.Get("http://" + proxy + "/" + url)
			testkit.OK(t, err)
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			testkit.Holds(t, err == nil && sha256.Sum256(body) == sha256.Sum256(file), len(body), err)
		})
	}
}

// A server with only a cipher that RFC 9113 forbids for HTTP/2 is asked over HTTP/1.1.
func TestHTTP2WithAForbiddenCipher(t *testing.T) {
	_, flags := serve(t, http.NotFoundHandler())
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: certificate.TLS.Certificates, MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA},
	})
	testkit.OK(t, err)
	server := &http.Server{
		Handler: http.HandlerFunc(content), ErrorLog: log.New(io.Discard, "", 0),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) { c.Close() }},
	}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	url := "https://" + listener.Addr().String() + "/f"
	flags = append(flags, url, "--link", "lo")
	expectFile(t, append(flags, "--give-up", "1m")...)
	expectFailure(t, 1, "the server chose HTTP/2 with TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", append([]string{"get", "-o", ownFile(t) + ".copy", "--algorithm", "alg3"}, flags...)...)
}

// If no other connection would help, get and put end at once.
func TestRefusalsOfTLSAreSaidAtOnce(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(content))
	t.Cleanup(plain.Close)
	old, flags := serveTLS(t, http.HandlerFunc(content), true, &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	wanted, _ := serveTLS(t, http.HandlerFunc(content), true, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	wanted12, _ := serveTLS(t, http.HandlerFunc(content), true, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12})
	twelve, _ := serveTLS(t, http.HandlerFunc(content), true, &tls.Config{MaxVersion: tls.VersionTLS12})
	for name, test := range map[string]struct{ url, min, want string }{
		"TLS 1.1 alone":                    {old, "1.2", "TLS handshake: remote error: tls: protocol version not supported"},
		"older than the user wants":        {twelve, "1.3", "protocol version not supported"},
		"a client certificate":             {wanted, "1.2", "certificate required"},
		"a client certificate for TLS 1.2": {wanted12, "1.2", "TLS handshake: remote error: tls: "},
		"another name":                     {strings.Replace(twelve, "127.0.0.1", "localhost", 1), "1.2", "certificate is valid for "},
		"no TLS":                           {strings.Replace(plain.URL, "http:", "https:", 1) + "/f", "1.2", "first record does not look like a TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := ownFile(t)
			for _, command := range [][]string{{"get", test.url, "-o", own + ".copy"}, {"put", own, test.url}} {
				began := time.Now()
				code, _, stderr := run(append(append(command, flags...), "--link", "wifi=lo", "--link", "lte=lo", "--min-tls-version", test.min, "--log-level", "error", "--give-up", "20s")...)
				if took := time.Since(began); code != 1 || !strings.Contains(stderr, test.want) || took > 10*time.Second {
					t.Errorf("%s: exit code %d after %v, stderr %q, want %q", command[0], code, took, stderr, test.want)
				}
			}
		})
	}
}

// hello returns the size of a connection's first message.
func hello(t *testing.T, flags ...string) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	defer listener.Close()
	size := make(chan int, 1)
	go func() {
		conn, err := listener.Accept()
		listener.Close() // A second hello is refused.
		if err != nil {
			size <- 0
			return
		}
		defer conn.Close()
		n, _ := conn.Read(make([]byte, 64<<10))
		size <- n
	}()
	own := ownFile(t)
	run(append([]string{"get", "https://" + listener.Addr().String() + "/f", "--link", "lo", "-o", own + ".copy", "--algorithm", "alg3"}, flags...)...)
	return <-size
}

// The lab's flags keep the first message at the size on which results depend.
func TestTLS13AloneIsAShorterHello(t *testing.T) {
	if both, alone := hello(t), hello(t, "--min-tls-version", "1.3"); alone == 0 || alone >= both {
		t.Errorf("TLS 1.3 alone takes %d bytes, both %d", alone, both)
	}
}

// A ClientHello that a box on the way does not let through is sent again without ML-KEM.
func TestAHelloThatIsTooLong(t *testing.T) {
	url, flags := serveTLS(t, http.HandlerFunc(content), true, &tls.Config{})
	server := strings.Split(url, "/")[2]
	for name, refuse := range map[string]func(*net.TCPConn){
		"reset":   func(c *net.TCPConn) { c.SetLinger(0) },
		"end":     func(*net.TCPConn) {},
		"failure": func(c *net.TCPConn) { c.Write([]byte{21, 3, 1, 0, 2, 2, 40}) },
		"alert":   func(c *net.TCPConn) { c.Write([]byte{21, 3, 1, 0, 2, 2, 50}) },
		"silent":  func(c *net.TCPConn) { io.Copy(io.Discard, c) },
	} {
		t.Run(name, func(t *testing.T) {
			box := testkit.Accept(t, nil, func(conn net.Conn) {
				said := make([]byte, 1400)
				n, err := io.ReadAtLeast(conn, said, 100)
				if length := 5 + int(said[3])<<8 + int(said[4]); err != nil || length > 1300 {
					refuse(conn.(*net.TCPConn))
					return
				}
				to, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer to.Close()
				to.Write(said[:n])
				go func() { io.Copy(to, conn); to.Close() }()
				io.Copy(conn, to)
			})
			began := time.Now()
			expectFile(t, append(flags, "https://"+box+"/f", "--link", "wifi=lo", "--link", "lte=lo", "--give-up", "20s")...)
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			proxy := startProxy(t, append(flags, "--link", "wifi=lo")...)
			response, err := http.Get("http://" + proxy + "/https://" + box + "/f")
			testkit.OK(t, err)
			if body, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(body, file) {
				t.Errorf("gateway: %s, %d bytes, error %v", response.Status, len(body), err)
			}
			response.Body.Close()
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// What is not safe is used only with --tls-legacy. Without it the error says what the server takes.
func TestLegacyTLS(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"TLS 1.0":      {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, "the server takes TLS 1.0 with "},
		"TLS 1.1":      {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "the server takes TLS 1.1 with "},
		"RSA":          {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}}, "TLS_RSA_WITH_AES_128_GCM_SHA256"},
		"RSA and CBC":  {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}}, "TLS_RSA_WITH_AES_128_CBC_SHA"},
		"CBC, SHA-256": {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256}}, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"},
		"3DES":         {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA}}, "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"},
		"RC4":          {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, flags := serveTLS(t, http.HandlerFunc(content), true, test.config)
			own := filepath.Join(t.TempDir(), "copy")
			flags = append([]string{"get", url, "-o", own, "--link", "wifi=lo", "--quiet", "--give-up", "10s"}, flags...)
			began := time.Now()
			code, _, stderr := run(flags...)
			want := test.want
			if want == "" {
				want = "the server may have only what Go cannot do, such as DHE or X448"
			}
			if code != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, "--tls-legacy") != (test.want != "") || time.Since(began) > 5*time.Second {
				t.Errorf("exit code %d after %v, stderr %q, want %q", code, time.Since(began), stderr, want)
			}
			code, _, stderr = run(append(flags, "--tls-legacy")...)
			if copied, err := os.ReadFile(own); (code == 0 && err == nil && bytes.Equal(copied, file)) != (test.want != "") {
				t.Errorf("--tls-legacy: exit code %d, stderr %q", code, stderr)
			}
		})
	}
	expectFailure(t, 2, "--min-tls-version 1.3 excludes it", "get", "https://127.0.0.1/f", "--link", "lo", "--tls-legacy", "--min-tls-version", "1.3")
}
