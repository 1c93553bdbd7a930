package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/tests/testkit"
)

// listen starts a server that serves one connection.
func listen(t *testing.T, serve func(*net.TCPConn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		serve(conn.(*net.TCPConn))
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// openTunnel returns a connection through the proxy.
func openTunnel(t *testing.T, proxy, target string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", proxy)
	testkit.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", target)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	return conn.(*net.TCPConn)
}

// startPaced starts a proxy whose links have a Pacer.
func startPaced(t *testing.T) (address string) {
	pacer := link.NewPacer()
	address, _ = start(t, nil, func(o *Options) {
		for i, l := range o.Engine.Links {
			o.Engine.Links[i].Dial = pacer.Dialer(l.Name, l.Dial)
		}
	})
	return address
}

// Browsers open connections that they may never use, and close them again.
func TestUnusedTunnelsDoNotDelayOthers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	defer listener.Close()
	address := startPaced(t)
	for range 3 {
		var open []*net.TCPConn
		for range 20 {
			open = append(open, openTunnel(t, address, listener.Addr().String()))
		}
		time.Sleep(400 * time.Millisecond) // Less than mostUnknown of the Pacer.
		for _, conn := range open {
			conn.Close()
		}
	}
}

// Whatever requests clients leave, before an answer or in the middle of one, and however tunnels end, says
// nothing against their server.
func TestClientsThatLeaveDoNotDelayOthers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begins" {
			w.Write([]byte("some"))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	address := startPaced(t)
	client := through(t, address)
	var clients sync.WaitGroup
	for n := range 40 {
		clients.Go(func() {
			ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer leave()
			path := []string{"/silent", "/begins"}[n%2]
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
			testkit.OK(t, err)
			if response, err := client.Do(request); err == nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	clients.Wait()
	for range 10 {
		begun := time.Now()
		tunnel := openTunnel(t, address, server.Listener.Addr().String())
		testkit.Holds(t, time.Since(begun) < 400*time.Millisecond, "a tunnel took", time.Since(begun))
		fmt.Fprint(tunnel, "no HTTP\r\n\r\n")
		io.Copy(io.Discard, tunnel) // The server refuses that, and ends the connection.
		tunnel.Close()
	}
}

// A server that ends every connection soon gets few of them. The client learns when to ask again.
func TestClientsLearnWhenToAskAgain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	address := startPaced(t)
	client := through(t, address)
	for range 50 {
		response, err := client.Post(server.URL, "", nil)
		testkit.OK(t, err)
		response.Body.Close()
		if response.StatusCode == http.StatusServiceUnavailable {
			seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
			testkit.Holds(t, err == nil && seconds > 0 && seconds <= 8, "Retry-After", response.Header.Get("Retry-After"))
			return
		}
		testkit.Same(t, response.StatusCode, http.StatusBadGateway, "status")
	}
	t.Error("50 failures, and no 503")
}

// A client that has ended its side still gets the answer.
func TestATunnelThatIsHalfClosed(t *testing.T) {
	server := listen(t, func(conn *net.TCPConn) {
		question, err := io.ReadAll(conn)
		fmt.Fprintf(conn, "%q, %v", question, err)
	})
	address, _ := start(t, nil, func(*Options) {})
	conn := openTunnel(t, address, server)
	io.WriteString(conn, "question")
	testkit.OK(t, conn.CloseWrite())
	if got, err := io.ReadAll(conn); string(got) != `"question", <nil>` || err != nil {
		t.Errorf("the answer is %s, %v", got, err)
	}
}

// If a client breaks off, its tunnel ends, even if the server is silent.
func TestATunnelWhoseClientBreaksOff(t *testing.T) {
	server := listen(t, func(*net.TCPConn) { <-t.Context().Done() })
	address, closed := startNoticed(t)
	conn := openTunnel(t, address, server)
	conn.SetLinger(0)
	conn.Close()
	<-closed
}

// startNoticed starts a proxy. closed is closed when a connection over the first link is.
func startNoticed(t *testing.T) (address string, closed chan struct{}) {
	closed = make(chan struct{})
	address, _ = start(t, nil, func(o *Options) {
		dial := o.Engine.Links[0].Dial
		o.Engine.Links[0].Dial = func(ctx context.Context, address string) (link.Socket, error) {
			socket, err := dial(ctx, address)
			return &closedSocket{Socket: socket, closed: closed}, err
		}
	})
	return address, closed
}

// closedSocket records that it was closed.
type closedSocket struct {
	link.Socket
	once   sync.Once
	closed chan struct{}
}

func (s *closedSocket) CloseWrite() error {
	return s.Socket.(interface{ CloseWrite() error }).CloseWrite()
}

func (s *closedSocket) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Socket.Close()
}
