package cli

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// say starts a server that sends the text after the first request of each connection.
func say(t *testing.T, config *tls.Config, answer string) (address string) {
	t.Helper()
	return testkit.Accept(t, config, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 4096)); err == nil {
			io.WriteString(conn, answer)
		}
	})
}

// otherNames returns a certificate with names that would rename a terminal's window.
func otherNames(t *testing.T) (config *tls.Config, authority string) {
	t.Helper()
	certificate, _ := testkit.Certificate("other.example", "\x1b]0;owned\x07")
	authority = written(t, filepath.Join(t.TempDir(), "ca.pem"), testkit.PEM(certificate))
	return &tls.Config{Certificates: []tls.Certificate{certificate}}, authority
}

// expectPrintable fails if a text could control a terminal.
func expectPrintable(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && !strconv.IsPrint(r) {
			t.Errorf("%s holds %q in %.300q", what, r, text[max(0, i-100):])
			return
		}
	}
	if len(text) > 300_000 { // Each level may write logBurst lines of 1 KB at once.
		t.Errorf("%s has %d bytes", what, len(text))
	}
}

// Text from a server never controls the terminal.
func TestNobodyElseWritesToTheTerminal(t *testing.T) {
	names, authority := otherNames(t)
	huge := strings.Repeat("x", 200_000) // A header may be 256 KiB.
	for name, test := range map[string]struct {
		tls    *tls.Config
		answer string
		want   string
	}{
		"reason phrase":      {nil, "HTTP/1.1 404 \x1b]0;owned\x07\r\nContent-Length: 0\r\n\r\n", `404 "\x1b]0;owned\a"`},
		"long reason phrase": {nil, "HTTP/1.1 404 " + huge + "\r\nContent-Length: 0\r\n\r\n", `404 "xxxx`},
		"header":             {nil, "HTTP/1.1 200 OK\r\nETag: \x1b]0;owned\x07\x00\r\n\r\n", `\x1b]0;owned\a`},
		"no HTTP":            {nil, "\x1b]0;owned\x07\r\n\r\n", `\x1b]0;owned\a`},
		"redirect":           {nil, "HTTP/1.1 302 Found\r\nLocation: ftp://\u009b2J\u202ehost/x\r\nContent-Length: 0\r\n\r\n", `ftp://\u009b2J\u202ehost/x", which is no URL`},
		"redirect to a name": {nil, "HTTP/1.1 302 Found\r\nLocation: http://\u009b2J.invalid/x\r\nContent-Length: 0\r\n\r\n", `\u009b2J.invalid`},
		"redirect, no URL":   {nil, "HTTP/1.1 302 Found\r\nLocation: http://user:secret@%zz\u009b2J/\r\nContent-Length: 0\r\n\r\n", `\u009b2J`},
		"coding":             {nil, "HTTP/1.1 200 OK\r\nContent-Encoding: \u009b2J" + huge + "\r\nContent-Length: 9\r\n\r\n", `\u009b2j`},
		"names of another":   {names, "", `\x1b]0;owned\a`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			address := "http://" + say(t, test.tls, test.answer) + "/f"
			if test.tls != nil {
				_, port, _ := strings.Cut(address, "127.0.0.1")
				address = "https://localhost" + port
			}
			for _, format := range []string{"text", "json"} {
				code, stdout, stderr := run("get", address, "--checksum", noChecksum, "--ca-file", authority, "--link", "wifi=lo", "--give-up", "2s",
					"--run-dir", "run", "--json", "--log-level", "debug", "--log-format", format)
				testkit.Holds(t, code == 1 && strings.Contains(stderr, test.want), code, stderr, test.want)
				testkit.Holds(t, !strings.Contains(stderr, "secret"), stderr)
				expectPrintable(t, "stdout", stdout)
				expectPrintable(t, "stderr", stderr)
				for _, name := range []string{"run/client.jsonl", "run/client.json"} {
					text, err := os.ReadFile(name)
					testkit.Holds(t, err == nil, err)
					expectPrintable(t, name, string(text))
				}
			}
		})
	}
}

// The proxy's errors show texts of servers.
func TestTheProxysErrorsArePrintable(t *testing.T) {
	proxy := startProxy(t, "--link", "wifi=lo")
	address := say(t, nil, "HTTP/1.1 2xx\x1b]0;owned\x07 OK\r\n\r\n")
	through := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})}
	defer through.CloseIdleConnections()
	response, err := (&http.Client{Transport: through}).Get("http://" + address + "/f")
	testkit.OK(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusBadGateway || !strings.Contains(string(text), `\x1b]0;owned\a`) {
		t.Errorf("%s %q (%v)", response.Status, text, err)
	}
	expectPrintable(t, "the answer", string(text))
}
