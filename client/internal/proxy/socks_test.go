package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// bySOCKS returns a client with net/http's SOCKS5, which lets the proxy resolve names.
func bySOCKS(t *testing.T, address string) *http.Client {
	c := direct(t)
	c.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "socks5h", Host: address})
	return c
}

func TestSOCKSAndHTTPOnOnePort(t *testing.T) {
	for _, secure := range []bool{false, true} {
		o := serve(t, secure, nil)
		address, counts := start(t, o, nil)
		client := bySOCKS(t, address)
		client.Transport.(*http.Transport).TLSClientConfig = o.Client().Transport.(*http.Transport).TLSClientConfig
		response := expectFile(t, client, o.URL+"/film.mkv")
		testkit.Same(t, response.Header.Get("Via"), "")
		client.CloseIdleConnections()
		var received quantity.Bytes
		counts.Range(func(_, n any) bool {
			received += n.(quantity.Bytes)
			return true
		})
		testkit.Holds(t, received >= quantity.Bytes(len(file)), received)
		if !secure {
			if _, got := get(t, through(t, address), o.URL+"/film.mkv"); !bytes.Equal(got, file) {
				t.Errorf("%d bytes by HTTP", len(got))
			}
		}
	}
}

// ask sends bytes to the proxy, ends its side, and returns the whole answer.
func ask(t *testing.T, proxy, said string) string {
	t.Helper()
	conn, err := net.Dial("tcp", proxy)
	testkit.OK(t, err)
	defer conn.Close()
	io.WriteString(conn, said)
	conn.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(conn)
	testkit.OK(t, err)
	return string(got)
}

func portOf(address string) uint16 { return netip.MustParseAddrPort(address).Port() }

// toPort returns a SOCKS request for a port of this machine.
func toPort(port uint16) string {
	return string([]byte{0, 1, 127, 0, 0, 1, byte(port >> 8), byte(port)})
}

const (
	socksHello   = "\x05\x01\x00"
	socksWelcome = "\x05\x00"
	nowhere      = "\x00\x01\x00\x00\x00\x00\x00\x00"
)

func TestWhatSOCKSRefuses(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	port := portOf(closed.Addr().String())
	closed.Close()
	address, _ := start(t, nil, func(o *Options) {
		for i, l := range o.Engine.Links {
			o.Engine.Links[i].Dial = func(ctx context.Context, address string) (link.Socket, error) {
				if strings.HasPrefix(address, "no-such-host.invalid:") {
					return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
				}
				return l.Dial(ctx, address)
			}
		}
	})
	own := portOf(address)
	for name, test := range map[string]struct{ said, answer string }{
		"only with a password":   {"\x05\x01\x02", "\x05\xff"},
		"BIND":                   {socksHello + "\x05\x02" + toPort(5353), socksWelcome + "\x05\x07" + nowhere},
		"mail":                   {socksHello + "\x05\x01" + toPort(25), socksWelcome + "\x05\x02" + nowhere},
		"itself":                 {socksHello + "\x05\x01" + toPort(own), socksWelcome + "\x05\x02" + nowhere},
		"nobody there":           {socksHello + "\x05\x01" + toPort(port), socksWelcome + "\x05\x05" + nowhere},
		"no such name":           {socksHello + "\x05\x01\x00\x03\x14no-such-host.invalid\x01\xbb", socksWelcome + "\x05\x04" + nowhere},
		"a name without letters": {socksHello + "\x05\x01\x00\x03\x00\x01\xbb", socksWelcome + "\x05\x04" + nowhere},
		"a strange address":      {socksHello + "\x05\x01\x00\x09\x7f\x00\x00\x01\x01\xbb", socksWelcome + "\x05\x08" + nowhere},
		"SOCKS4":                 {"\x04\x01" + toPort(443)[2:] + "user\x00", "\x00\x5b" + strings.Repeat("\x00", 6)},
		"SOCKS4 in between":      {socksHello + "\x04\x01" + toPort(443), socksWelcome + "\x05\x01" + nowhere},
		"half a request":         {socksHello + "\x05\x01\x00", socksWelcome + "\x05\x01" + nowhere},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Same(t, ask(t, address, test.said), test.answer)
		})
	}
}

// Bytes that a client sends before the reply are not lost. The client may end its side before the
// server does.
func TestASOCKSClientThatDoesNotWait(t *testing.T) {
	server := listen(t, func(conn *net.TCPConn) {
		question, err := io.ReadAll(conn)
		fmt.Fprintf(conn, "%q, %v", question, err)
	})
	address, _ := start(t, nil, nil)
	got := ask(t, address, socksHello+"\x05\x01"+toPort(portOf(server))+"question")
	testkit.Holds(t, strings.HasPrefix(got, socksWelcome+"\x05\x00\x00\x01\x7f\x00\x00\x01") && strings.HasSuffix(got, `"question", <nil>`), got)
}

// Tunnels and slow clients end with the proxy. start waits for that.
func TestTunnelsEndWithTheProxy(t *testing.T) {
	server := listen(t, func(*net.TCPConn) { <-t.Context().Done() })
	address, _ := start(t, nil, nil)
	connect := fmt.Sprintf("CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", server)
	for _, said := range []string{socksHello + "\x05\x01" + toPort(portOf(server)), socksHello, connect} {
		conn, err := net.Dial("tcp", address)
		testkit.OK(t, err)
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, said)
		if _, err := io.ReadFull(conn, make([]byte, len(socksWelcome))); err != nil {
			t.Fatal(err)
		}
	}
}
