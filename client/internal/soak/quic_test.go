package soak

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// freezing is a socket for datagrams that sends none to frozen clients.
type freezing struct {
	net.PacketConn
	mu     sync.Mutex
	frozen map[string]bool
}

func (f *freezing) WriteTo(p []byte, to net.Addr) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.frozen[to.String()] {
		return len(p), nil
	}
	return f.PacketConn.WriteTo(p, to)
}

// quic-go warns of a socket without these.
func (*freezing) SetReadBuffer(int) error  { return nil }
func (*freezing) SetWriteBuffer(int) error { return nil }

// quicConn is a connection by QUIC, with a server of its own.
type quicConn struct {
	*quic.Conn
	of     flow
	socket *freezing
	server *http3.Server
}

func (c *quicConn) flow() flow        { return c.of }
func (c *quicConn) established() bool { return c.Context().Err() == nil }
func (c *quicConn) end()              { c.reset() }

func (c *quicConn) reset() {
	_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeInternalError), "")
}

func (c *quicConn) goodbye() {
	go func() {
		_ = c.server.Shutdown(c.Context())
	}()
}

func (c *quicConn) freeze(d time.Duration) {
	c.socket.mu.Lock()
	c.socket.frozen[c.RemoteAddr().String()] = true
	c.socket.mu.Unlock()
	time.AfterFunc(d, c.reset)
}

// admitQUIC serves the connections to a socket by HTTP/3. Each allows another number of requests at a time.
func (h *hostile) admitQUIC(client string, packets net.PacketConn, config *tls.Config) {
	socket := &freezing{PacketConn: packets, frozen: map[string]bool{}}
	listener, err := quic.Listen(socket, http3.ConfigureTLSConfig(config), &quic.Config{
		GetConfigForClient: func(*quic.ClientInfo) (*quic.Config, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.accepted++
			h.byQUIC++
			limit := limits[h.source("connection", h.accepted).IntN(len(limits))]
			return &quic.Config{MaxIncomingStreams: int64(limit), Allow0RTT: true}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	for {
		conn, err := listener.Accept(context.Background())
		if err != nil {
			return
		}
		h.mu.Lock()
		c := &quicConn{Conn: conn, of: h.flowOf(client, conn), socket: socket}
		c.server = &http3.Server{Handler: h, ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		}}
		h.count(c)
		h.mu.Unlock()
		context.AfterFunc(conn.Context(), func() { h.uncount(c) })
		go c.server.ServeQUICConn(conn)
	}
}

// offer makes answers to a client tell where the server speaks HTTP/3.
func offer(w http.ResponseWriter, r *http.Request) {
	_, port, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
	w.Header().Set("Alt-Svc", `h3=":`+port+`"`)
}
