package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

const doubt = "the file may be cut short: "

// lengthless answers GET with a body that ends with its connection, as HTTP/1.0 servers do. It ends
// with TLS's close_notify if closeNotify is true.
func lengthless(fields string, closeNotify bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n%s\r\n", fields)
		if r.Method == http.MethodGet {
			conn.Write(file)
		}
		if closeNotify {
			conn.Close()
		} else {
			conn.(*tls.Conn).NetConn().Close()
		}
	}
}

// A body that ends with its connection without close_notify is accepted with a warning, unless a
// checksum or a length proves that it is complete.
func TestUnprovenEnds(t *testing.T) {
	sum := sha256.Sum256(file)
	digest := "Repr-Digest: sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":\r\n"
	length := fmt.Sprintf("Accept-Ranges: none\r\nContent-Length: %d\r\n", len(file))
	chunks := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.(http.Flusher).Flush()
		if r.Method == http.MethodGet {
			bytes.NewReader(file).WriteTo(w)
		}
	}
	t.Chdir(t.TempDir())
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		flag    string
		doubted bool
	}{
		"close_notify":              {lengthless("", true), "", false},
		"no close_notify":           {lengthless("", false), "", true},
		"no close_notify, checksum": {lengthless("", false), "--checksum=" + checksum, false},
		"no close_notify, digest":   {lengthless(digest, false), "", false},
		"no close_notify, length":   {lengthless(length, false), "", false},
		"chunks":                    {chunks, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			url, flags := serveHTTP1(t, test.handler)
			flags = append([]string{"get", url, "--json", "--run-dir", name, "--link", "wifi=lo", "-o", name + "/copy"}, flags...)
			if test.flag != "" {
				flags = append(flags, test.flag)
			}
			code, stdout, stderr := run(flags...)
			client, err := os.ReadFile(name + "/client.json")
			got, readErr := os.ReadFile(name + "/copy")
			if code != 0 || err != nil || readErr != nil || !bytes.Equal(got, file) {
				t.Fatalf("exit code %d, stderr %q, %v, %v", code, stderr, err, readErr)
			}
			for where, found := range map[string]bool{
				"stderr":      strings.Contains(stderr, doubt),
				"stdout":      strings.Contains(stdout, `"warning":"`+doubt),
				"client.json": strings.Contains(string(client), `"warning": "`+doubt),
			} {
				testkit.Same(t, found, test.doubted, where, stderr, stdout)
			}
		})
	}
}

// A server that serves one connection at a time, answers GET with the whole file, and never answers
// HEAD, such as openssl s_server -WWW.
func TestAServerOfOneConnectionAtATime(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			for in := bufio.NewReader(conn); ; {
				line, err := in.ReadString('\n')
				if err != nil {
					break
				}
				if strings.HasPrefix(line, "GET ") {
					fmt.Fprintf(conn, "HTTP/1.0 200 ok\r\nContent-type: text/plain\r\n\r\n%s", file)
					break
				}
			}
			conn.Close()
		}
	}()
	for _, links := range [][]string{{"--link", "wifi=lo"}, {"--link", "wifi=lo", "--link", "lte=lo"}} {
		begun := time.Now()
		expectFile(t, append(links, "http://"+listener.Addr().String()+"/file.bin", "--give-up", "10s", "--checksum", checksum)...)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	}
}
