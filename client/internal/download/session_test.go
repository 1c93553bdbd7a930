package download

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// connections are what the links had of them: how many in all, and how many at a time.
type connections struct{ made, most int }

// counted downloads with rescue, and returns each link's connections.
func counted(t *testing.T, handler http.Handler, change func(*Options, *network)) (rundir.Summary, *log, map[string]connections) {
	t.Helper()
	var net *network
	summary, events := rescued(t, schedulers["adaptive"], handler, "", func(o *Options, n *network) {
		net = n
		if change != nil {
			change(o, n)
		}
	})
	return summary, events, map[string]connections{
		"wifi": {len(net.wifi.made), net.wifi.most},
		"lte":  {len(net.lte.made), net.lte.most},
	}
}

// A server that has no stream free is not going away: the next request waits on the same connection.
func TestServerLimitsStreams(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 100} {
		for name, s := range rescuers {
			t.Run(fmt.Sprintf("%d, %s", limit, name), func(t *testing.T) {
				summary, _, links := counted(t, http.HandlerFunc(content), func(o *Options, n *network) {
					o.Scheduler = s
					n.server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: limit}
				})
				for link, c := range links {
					testkit.Holds(t, c.made == 1 || slack(name) > 3 && link == "lte" && c.made == 0, "connections, and at a time", link, c.made, c.most)
				}
				within(t, "download time over ideal", seconds(summary.Download)/ideal(), 1, 1.9)
			})
		}
	}
}

// A server that says goodbye to every connection after one request, and sends
// what it owes slowly, has few connections at a time from each link.
func TestGoodbyesWithSlowBodies(t *testing.T) {
	handler := ranged(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		content(&slowBody{w}, r)
	})
	_, _, links := counted(t, handler, func(o *Options, n *network) {
		o.Scheduler = schedule.Alg1{UpperLimit: 100_000, FirstRequests: 200_000}
	})
	for name, c := range links {
		testkit.Holds(t, c.most <= mostSessions, "connections at a time, and the most", name, c.most, mostSessions)
	}
}

// slowly serves the content at 200 kB/s for each request.
func slowly(w http.ResponseWriter, r *http.Request) { content(&slowBody{w}, r) }

// slowBody sends 200 kB/s.
type slowBody struct{ http.ResponseWriter }

func (b *slowBody) Write(p []byte) (int, error) {
	const piece = 4000
	for sent := 0; sent < len(p); sent += piece {
		time.Sleep(20 * time.Millisecond)
		if n, err := b.ResponseWriter.Write(p[sent:min(len(p), sent+piece)]); err != nil {
			return sent + n, err
		}
		b.ResponseWriter.(http.Flusher).Flush()
	}
	return len(p), nil
}

// What a server owes on a connection to which it said goodbye, and does not
// send, comes over the next one, be there no other link.
func TestGoodbyeAndSilence(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"ranges": content, "no ranges": noRanges} {
		for asks, s := range askers {
			t.Run(name+", "+asks, func(t *testing.T) {
				var once sync.Once
				handler := func(w http.ResponseWriter, r *http.Request) {
					hangs := false
					if r.Method == http.MethodGet {
						once.Do(func() { hangs = true })
					}
					if !hangs {
						answer(w, r)
						return
					}
					w.Header().Set("Connection", "close")
					answer(&shortBody{ResponseWriter: w, left: 300_000}, r)
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				}
				summary, _ := rescued(t, s, http.HandlerFunc(handler), "", func(o *Options, n *network) {
					o.Links = o.Links[:1]
				})
				within(t, "download time", seconds(summary.Download), 0.6, 4)
			})
		}
	}
}

// gate is a listener that counts connections. All after the first quick ones wait for so long before their TLS
// handshake.
type gate struct {
	net.Listener
	quick int32
	wait  time.Duration
	made  atomic.Int32
}

func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil || g.made.Add(1) <= g.quick {
		return conn, err
	}
	return &gated{conn, time.Now().Add(g.wait)}, nil
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
	// A session has five seconds' work when the server says goodbye to it. So none ends.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	o := usual(new(simNet))
	o.URL.Host, o.Links = "server:"+port, []transfer.Link{{Name: "wifi", Device: "lo", Dial: far}}
	o.Scheduler, o.Rescue, o.Output = schedule.Alg1{UpperLimit: 1e6, FirstRequests: 1e6}, true, fileSink(t.TempDir())
	_, err = Run(ctx, o)
	testkit.Holds(t, errors.Is(err, context.DeadlineExceeded), "the download ended with", err)
	testkit.Same(t, g.made.Load(), mostSessions, "connections")
}
