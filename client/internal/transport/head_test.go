package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// raw serves one answer to each request, as it is.
func raw(t *testing.T, answer string) *url.URL {
	t.Helper()
	address := testkit.Accept(t, nil, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			// Two writes: a head may arrive in parts.
			for _, part := range []string{answer[:9], answer[9:]} {
				_, _ = io.WriteString(conn, part)
			}
		}
	})
	return &url.URL{Scheme: "http", Host: address, Path: "/f"}
}

// body looks like heads, and must stay as it is.
const body = "http/1.1 200 OK\r\nX\x01: +5\x02\r\n\r\nhttp/1.1 200 OK\r\n\r\n"

// Heads that curl and browsers accept are mended. Others end the download at once.
func TestHeads(t *testing.T) {
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	for name, test := range map[string]struct {
		head string
		ok   bool
	}{
		"correct":                 {"HTTP/1.1 200 OK\r\n" + length, true},
		"lower case":              {"http/1.1 200 OK\r\n" + length, true},
		"line feeds":              {"HTTP/1.1 200 OK\n" + strings.ReplaceAll(length, "\r", ""), true},
		"an empty line before":    {"\r\nHTTP/1.1 200 OK\r\n" + length, true},
		"a name beyond ASCII":     {"HTTP/1.1 200 OK\r\nStrict\u2010Transport: 1\r\n" + length, true},
		"such a name, folded":     {"HTTP/1.1 200 OK\r\nStrict\u2010Transport: 1\r\n 2\r\n" + length, true},
		"no name":                 {"HTTP/1.1 200 OK\r\n: 1\r\n" + length, true},
		"a name with a space":     {"HTTP/1.1 200 OK\r\nA b: 1\r\n" + length, true},
		"a space after the name":  {"HTTP/1.1 200 OK\r\n" + strings.Replace(length, ":", " :", 1), true},
		"folded at the beginning": {"HTTP/1.1 200 OK\r\n X: 1\r\n" + length, true},
		"control characters":      {"HTTP/1.1 200 OK\r\nX: a\x01b\x7f\r\n \x02\r\n" + length, true},
		"a plus sign":             {"HTTP/1.1 200 OK\r\n" + strings.Replace(length, ": ", ": +", 1), true},
		"the same length twice":   {"HTTP/1.1 200 OK\r\n" + strings.Replace(length, "\r", fmt.Sprintf(", %d\r", len(body)), 1), true},
		"identity":                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n" + length, true},
		"an interim answer":       {"http/1.1 103 Early Hints\r\nX: \x01\r\n\r\nhttp/1.1 200 OK\r\n" + length, true},
		"chunked":                 {fmt.Sprintf("http/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX: y\r\n\r\n", len(body), body), true},
		"two lengths":             {"HTTP/1.1 200 OK\r\n" + length + "Content-Length: 1\r\n", false},
		"a list of two lengths":   {"HTTP/1.1 200 OK\r\n" + strings.Replace(length, "\r", ", 1\r", 1), false},
		"no number":               {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n", false},
		"NUL":                     {"HTTP/1.1 200 OK\r\nX: \x00\r\n" + length, false},
		"no colon":                {"HTTP/1.1 200 OK\r\nXXXXX\r\n" + length, false},
		"another status line":     {"HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\n" + length, false},
		"ICY":                     {"ICY 200 OK\r\n" + length, false},
		"no HTTP":                 {"220 mail.example ESMTP\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := test.head
			if !strings.Contains(answer, "\r\n\r\n0\r\n") && !strings.Contains(answer, "chunked") {
				empty := "\r\n"
				if !strings.Contains(answer, "\r") {
					empty = "\n"
				}
				answer += empty + body
			}
			u := raw(t, answer)
			conn := connect(t, u, nil)
			defer conn.Close()
			for range 2 {
				response, err := conn.Whole(t.Context(), Target{URL: u}, Resource{Size: -1})
				if !test.ok {
					refused := new(headError)
					testkit.Holds(t, errors.As(err, refused) && refused.Permanent(), err)
					return
				}
				testkit.OK(t, err)
				got, err := io.ReadAll(response)
				testkit.Holds(t, string(got) == body && err == nil, got, err)
				response.Close()
			}
		})
	}
}

// The zone of an IPv6 address has a meaning on this machine only.
func TestServerName(t *testing.T) {
	for host, want := range map[string]string{"fe80::1%eth0": "fe80::1", "::1": "::1", "example.com": "example.com"} {
		testkit.Same(t, serverName(host), want, host)
	}
}
