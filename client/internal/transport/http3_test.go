package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/tests/testkit"
)

// http3Server serves for a host by QUIC. It returns its address, and its authority.
func http3Server(t *testing.T, host string, handle func(w http.ResponseWriter, r *http.Request, conn *quic.Conn)) (address string, roots *x509.CertPool) {
	certificate, roots := testkit.Certificate(host)
	return serveHTTP3(t, certificate, handle), roots
}

func serveHTTP3(t *testing.T, certificate tls.Certificate, handle func(w http.ResponseWriter, r *http.Request, conn *quic.Conn)) (address string) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.OK(t, err)
	type key struct{}
	server := &http3.Server{
		TLSConfig:   http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}}),
		ConnContext: func(ctx context.Context, conn *quic.Conn) context.Context { return context.WithValue(ctx, key{}, conn) },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handle(w, r, r.Context().Value(key{}).(*quic.Conn))
		}),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(socket)
	}()
	t.Cleanup(func() {
		server.Close()
		socket.Close()
		<-ended
	})
	return socket.LocalAddr().String()
}

// alone dials over the loopback device by HTTP/3 alone.
func alone(lo link.Dialer, roots *x509.CertPool) dialFunc {
	return link.NewPacer().Dialer("lo", (&HTTP3{Only: true}).Dialer("lo", lo.Packets, nil, nil, &tls.Config{RootCAs: roots}))
}

// opened is a session with the server of a URL.
func opened(t *testing.T, dial dialFunc, roots *x509.CertPool, hellos *Hellos, u *url.URL) *Conn {
	again := func(ctx context.Context) (link.Socket, error) { return dial(ctx, Address(u)) }
	socket, err := again(To(t.Context(), u))
	testkit.OK(t, err)
	conn, err := Open(t.Context(), socket, again, &tls.Config{RootCAs: roots}, hellos, u)
	testkit.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestHTTP3BringsARangeAndTellsTheRoundTrip(t *testing.T) {
	const content = "0123456789"
	address, roots := http3Server(t, "host.example", func(w http.ResponseWriter, r *http.Request, _ *quic.Conn) {
		w.Header().Set("Content-Range", "bytes 2-4/10")
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, content[2:5])
	})
	_, port, _ := net.SplitHostPort(address)
	server := netip.MustParseAddrPort(testkit.Names(t, "127.0.0.1"))
	by := alone(link.Dialer{Device: "lo", NameServers: []netip.AddrPort{server}}, roots)
	// The second time the server is told by its address.
	for _, at := range []string{"host.example:" + port, address} {
		u := &url.URL{Scheme: "https", Host: "host.example:" + port, Path: "/"}
		dial := func(ctx context.Context, _ string) (link.Socket, error) { return by(ctx, at) }
		conn := opened(t, dial, roots, &Hellos{HTTP3: &HTTP3{Only: true}}, u)
		target := Target{URL: u}
		body, err := conn.Get(t.Context(), target, Resource{Size: 10}, ranges.Range{Offset: 2, Length: 3})
		testkit.OK(t, err)
		got, err := io.ReadAll(body)
		testkit.Holds(t, err == nil && string(got) == content[2:5], got, err)
		rtt, err := conn.Socket.RoundTrip()
		testkit.Holds(t, err == nil && rtt.Last > 0 && rtt.Min > 0 && conn.Protocol == "TLS 1.3 h3", rtt, err, conn.Protocol)

		heard := conn.Received()
		testkit.OK(t, conn.Ask())
		testkit.Eventually(t, "the answer", func() bool { return conn.Received() > heard })
		testkit.Holds(t, conn.Usable())
	}
}

// The first of two addresses is silent, closed or refuses. The second one answers.
func TestHTTP3TriesTheNextAddress(t *testing.T) {
	const silent, closed, refuses = "silent", "closed", "refuses"
	for _, first := range []string{silent, closed, refuses} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			address, roots := http3Server(t, "host.example", func(http.ResponseWriter, *http.Request, *quic.Conn) {})
			_, port, _ := net.SplitHostPort(address)
			var bad net.PacketConn
			if first != closed {
				var err error
				bad, err = net.ListenPacket("udp", "127.0.0.9:"+port)
				testkit.OK(t, err)
				defer bad.Close()
			}
			if first == refuses {
				other, _ := testkit.Certificate("other.example")
				listener, err := quic.Listen(bad, http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{other}}), nil)
				testkit.OK(t, err)
				defer listener.Close()
			}
			server := netip.MustParseAddrPort(testkit.Names(t, "127.0.0.9", "127.0.0.1"))
			lo := link.Dialer{Device: "lo", Family: link.IPv4, NameServers: []netip.AddrPort{server}, Memory: new(link.Memory)}
			u := &url.URL{Scheme: "https", Host: "host.example:" + port, Path: "/"}
			visit := func() {
				t.Helper()
				ctx, cancel := context.WithTimeout(To(t.Context(), u), 10*time.Second)
				defer cancel()
				socket, err := alone(lo, roots)(ctx, u.Host)
				testkit.OK(t, err)
				defer socket.Close()
				testkit.Same(t, socket.RemoteAddr().String(), address)
			}
			visit()
			if first != silent {
				return
			}
			// The link remembers which address was late.
			left := func() (packets int) {
				for ; ; packets++ {
					bad.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
					if _, _, err := bad.ReadFrom(make([]byte, 2000)); err != nil {
						return packets
					}
				}
			}
			testkit.Holds(t, left() > 0)
			visit()
			testkit.Same(t, left(), 0)
		})
	}
}

// A server that refuses counts as one that failed: the Pacer spares it.
func TestHTTP3NamesWhoEndsAConnection(t *testing.T) {
	address, roots := http3Server(t, "127.0.0.1", func(_ http.ResponseWriter, _ *http.Request, conn *quic.Conn) {
		conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), "enough")
	})
	lo := link.Dialer{Device: "lo"}
	u := &url.URL{Scheme: "https", Host: address}
	conn := opened(t, alone(lo, roots), roots, &Hellos{HTTP3: &HTTP3{Only: true}}, u)
	_, err := conn.Head(t.Context(), Target{URL: u})
	testkit.Holds(t, errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, net.ErrClosed) && strings.Contains(err.Error(), "enough"), err)
	testkit.Eventually(t, "the end", func() bool { return !conn.Usable() })

	_, strangers := testkit.Certificate("127.0.0.1")
	_, err = alone(lo, strangers)(To(t.Context(), u), address)
	refused := new(HandshakeError)
	testkit.Holds(t, errors.As(err, &refused) && refused.IsFinal(), err)
}
