package download

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// gate is a listener that counts the connections that neither end has closed. All after the
// first quick ones wait for so long before their TLS handshake.
type gate struct {
	net.Listener
	quick int
	wait  time.Duration

	mu   sync.Mutex
	made []*net.TCPConn
	most int
}

func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made = append(g.made, conn.(*net.TCPConn))
	open := 0
	for _, one := range g.made {
		if isOpen(one) {
			open++
		}
	}
	g.most = max(g.most, open)
	if len(g.made) <= g.quick {
		return conn, nil
	}
	return &gated{conn, time.Now().Add(g.wait)}, nil
}

// isOpen reports whether the kernel knows of no end of the connection.
func isOpen(conn *net.TCPConn) bool {
	const established = 1
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		is = err == nil && info.State == established
	})
	return is && err == nil
}

// gated is a connection of which nothing is read before a time.
type gated struct {
	net.Conn
	opens time.Time
}

func (c *gated) Read(p []byte) (int, error) {
	time.Sleep(time.Until(c.opens))
	return c.Conn.Read(p)
}

// farSocket has the round trip time of a server far away, which may take long to connect.
type farSocket struct{ link.Socket }

func (farSocket) RoundTrip() (link.RoundTrip, error) {
	return link.RoundTrip{Last: 400 * time.Millisecond, Min: 400 * time.Millisecond}, nil
}

// What a link tries beside a handshake that takes long counts among its connections.
func TestALongHandshakeTakesNoFurtherSocket(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.2:0")
	testkit.OK(t, err)
	g := &gate{Listener: listener, quick: mostSessions - 1, wait: 4 * time.Second}
	names := netip.MustParseAddrPort(testkit.Names(t, "127.0.0.2"))
	handler := ranged(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		content(&slowBody{w}, r)
	})
	server := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	var running sync.WaitGroup
	running.Go(func() { server.ServeTLS(g, "", "") })
	defer func() {
		server.Close()
		running.Wait()
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	dialer := link.Dialer{Device: "lo", NameServers: []netip.AddrPort{names}, Memory: new(link.Memory)}
	far := func(ctx context.Context, address string) (link.Socket, error) {
		socket, err := dialer.Dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return farSocket{socket}, nil
	}
	// A session has five seconds' work when the server says goodbye to it.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	o := usual(new(simNet))
	o.URL.Host, o.Links = "server:"+port, []transfer.Link{{Name: "wifi", Device: "lo", Dial: far}}
	o.Scheduler, o.Rescue, o.Output = schedule.Alg1{UpperLimit: 1e6, FirstRequests: 1e6}, true, fileSink(t.TempDir(), nil)
	_, err = Run(ctx, o)
	testkit.Holds(t, errors.Is(err, context.DeadlineExceeded), "the download ended with", err)
	g.mu.Lock()
	defer g.mu.Unlock()
	testkit.Same(t, g.most, mostSessions, "connections at a time")
}
