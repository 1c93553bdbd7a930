package storm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/testutils/simnet"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/transport"
)

// air carries UDP datagrams, those of the server at a rate and through a queue. Nobody hears of one that arrives nowhere.
type air struct {
	simnet.PerfectRouter
	mu   sync.Mutex
	free time.Time
}

// The server's datagrams pass at so many bytes a second. One that would wait longer is dropped.
const (
	airRate = 1_600_000
	airWait = 2 * rtt
)

func (a *air) SendPacket(p simnet.Packet) error {
	now := time.Now()
	late := time.Duration(0)
	if p.From.String() == quicServer.String() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if late = max(0, a.free.Sub(now)); late > airWait {
			return nil
		}
		late += time.Duration(len(p.Data)) * time.Second / airRate
		a.free = now.Add(late)
	}
	time.AfterFunc(rtt/2+late, func() { _ = a.PerfectRouter.SendPacket(p) })
	return nil
}

// quicEnd is the server's end of a connection by QUIC, which conn is once it is made.
type quicEnd struct {
	client *simnet.SimConn
	opened time.Time
	conn   *quic.Conn
}

func (e *quicEnd) ends(code http3.ErrCode) error {
	if e.conn == nil {
		return nil
	}
	return e.conn.CloseWithError(quic.ApplicationErrorCode(code), "")
}

func (e *quicEnd) Close() error { return e.ends(http3.ErrCodeNoError) }
func (e *quicEnd) reset()       { _ = e.ends(http3.ErrCodeInternalError) }

// packetSocket is a client's socket for UDP datagrams.
type packetSocket struct{ *simnet.SimConn }

var quicServer = netip.MustParseAddrPort("192.0.2.2:443")

func (packetSocket) Send(context.Context, []byte, string) error { return errors.ErrUnsupported }
func (packetSocket) Receive([]byte) (int, netip.AddrPort, error) {
	return 0, netip.AddrPort{}, errors.ErrUnsupported
}
func (packetSocket) Connect(ctx context.Context, _ string, by func(context.Context, netip.AddrPort) (io.Closer, error)) (io.Closer, error) {
	return by(ctx, quicServer)
}

// packets opens a client's socket, which counts as a connection.
func (n *network) packets(context.Context) (link.PacketSocket, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	opened := simnet.NewBlockingSimConn(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1 + len(n.accepted)}, &n.air)
	n.accepted, n.ends = append(n.accepted, time.Now()), append(n.ends, &quicEnd{client: opened, opened: time.Now()})
	return packetSocket{opened}, nil
}

// headers are what a datagram costs besides bodies, in bytes: those of QUIC, its frames and HTTP/3.
const headers = 40

// datagrams returns how many bytes besides these have arrived in datagrams.
func (n *network) datagrams() (bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.ends {
		if e, ok := one.(*quicEnd); ok {
			stats := e.client.Stats()
			bytes += int64(stats.BytesRcvd - headers*stats.PacketsRcvd)
		}
	}
	return bytes
}

// listen serves connections by QUIC until the end of the network. Nobody answers if serve is nil.
func (n *network) listen(serve func(*quicEnd), refuses bool) {
	if serve == nil && !refuses {
		return
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{http3.NextProtoH3}}
	if refuses {
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("no") }
	}
	socket := simnet.NewBlockingSimConn(net.UDPAddrFromAddrPort(quicServer), &n.air)
	by := &quic.Transport{Conn: socket}
	listener, err := by.Listen(config, nil)
	if err != nil {
		panic(err)
	}
	n.stop = func() {
		listener.Close()
		by.Close()
		socket.Close()
	}
	go func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			n.mu.Lock()
			for _, one := range n.ends {
				if e, ok := one.(*quicEnd); ok && e.client.LocalAddr().String() == conn.RemoteAddr().String() {
					e.conn = conn
					go serve(e)
				}
			}
			n.mu.Unlock()
		}
	}()
}

// http3With returns a server that serves HTTP/3 on a connection.
func http3With(answer func(*quicEnd, http.ResponseWriter, *http.Request)) func(*quicEnd) {
	return func(e *quicEnd) {
		server := http3.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(e, w, r) })}
		_ = server.ServeQUICConn(e.conn)
	}
}

// speaks returns a server that sends bytes on its control stream, and answers each request by other bytes.
func speaks(control, answer string) func(*quicEnd) {
	return func(e *quicEnd) {
		if stream, err := e.conn.OpenUniStream(); err == nil {
			_, _ = io.WriteString(stream, control)
		}
		for {
			stream, err := e.conn.AcceptStream(context.Background())
			if err != nil {
				return
			}
			_, _ = io.WriteString(stream, answer)
		}
	}
}

// settings are a control stream with an empty frame SETTINGS (RFC 9114 6.2.1, 7.2.4).
const settings = "\x00\x04\x00"

// failures3 are the ways in which a server fails over HTTP/3.
var failures3 = map[string]func(*quicEnd){
	"says nothing":        nil,
	"refuses TLS":         nil,
	"closes at once":      func(e *quicEnd) { e.Close() },
	"fails at once":       func(e *quicEnd) { e.reset() },
	"silent in HTTP/3":    speaks(settings, ""),
	"no settings":         speaks("\x00\x00\x01\x00", ""),
	"GOAWAY at once":      speaks(settings+"\x07\x01\x00", ""),
	"bad frame":           speaks(settings, "\x02\x01\x00"),
	"bad header":          speaks(settings, "\x01\x04\xff\xff\xff\xff"),
	"DATA first":          speaks(settings, "\x00\x01x"),
	"closes on a request": http3With(func(e *quicEnd, _ http.ResponseWriter, _ *http.Request) { e.Close() }),
	"fails on a request":  http3With(func(e *quicEnd, _ http.ResponseWriter, _ *http.Request) { e.reset() }),
	"resets requests":     http3With(func(*quicEnd, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	"503": http3With(func(_ *quicEnd, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}),
	"large header": http3With(func(_ *quicEnd, w http.ResponseWriter, _ *http.Request) {
		for i := range 2000 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("y", 1000))
		}
	}),
	"one byte": http3With(func(_ *quicEnd, w http.ResponseWriter, r *http.Request) {
		http.ServeContent(cut{w}, r, "", time.Time{}, &zeros{})
	}),
	"one byte, and closes": http3With(func(e *quicEnd, w http.ResponseWriter, r *http.Request) {
		http.ServeContent(cut{w}, r, "", time.Time{}, &zeros{})
		time.Sleep(rtt)
		e.Close()
	}),
}

// cut sends one byte of a body.
type cut struct{ http.ResponseWriter }

func (c cut) Write(p []byte) (int, error) {
	_, _ = c.ResponseWriter.Write(p[:1])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	return 0, errors.New("no more")
}

// A server that fails over HTTP/3 gets few connections, too: one that speaks nothing else, and one that offers it
// over HTTP/2, where it works.
func TestNoServerThatFailsOverHTTP3IsStormed(t *testing.T) {
	for i, failure := range slices.Sorted(maps.Keys(failures3)) {
		for j, way := range []struct {
			name string
			most int
			only bool
		}{{"only", 16, true}, {"only, 1 each", 1, true}, {"offered", 16, false}} {
			if racedetector.On && i%3 != j {
				continue
			}
			t.Run(way.name+"/"+failure, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(handles([]string{"h2"}, func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Alt-Svc", `h3=":443"`)
						w.Header().Set("ETag", `"1"`)
						http.ServeContent(slowly{w}, r, "", time.Time{}, &zeros{})
					}))
					n.listen(failures3[failure], failure == "refuses TLS")
					o := options(n, "adaptive", true, way.most)
					n.overHTTP3(&o, way.only)
					lasts := lasting
					if !way.only {
						lasts = lasting / 6 // TCP brings much meanwhile.
					}
					ctx, cancel := context.WithTimeout(t.Context(), lasts)
					defer cancel()
					_, err := download.Run(ctx, o)
					n.end()
					// A server that works gets as many connections by TCP as it deserves.
					n.accepted = n.accepted[:0]
					for _, one := range n.ends {
						if e, ok := one.(*quicEnd); ok {
							n.accepted = append(n.accepted, e.opened)
						}
					}
					most := n.most(time.Time{})
					if most > allowed || !way.only && n.received.Load() < 1e6 {
						t.Errorf("%d connections in a minute, %d bytes by TCP: %v", most, n.received.Load(), err)
					} else {
						t.Logf("%d connections in a minute, %d in all, %d bytes by TCP: %v", most, len(n.accepted), n.received.Load(), err)
					}
				})
			})
		}
	}
}

// overHTTP3 makes a download's links speak HTTP/3, alone or where it is offered.
func (n *network) overHTTP3(o *download.Options, only bool) {
	h := &transport.HTTP3{Only: only}
	o.Hellos = &transport.Hellos{HTTP3: h}
	for i, l := range o.Links {
		o.Links[i].Dial = n.pacer.Dialer(l.Name, h.Dialer(l.Name, n.packets, nil, n.dial, o.TLS))
	}
}
