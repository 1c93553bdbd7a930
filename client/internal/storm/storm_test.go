package storm

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/proxy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/internal/upload"
	"github.com/linklab/linklab/client/tests/testkit"
)

// allowed is how many connections a failing server may get in a minute, over both links together.
const allowed = 40

// lasting is how long a server fails.
const lasting = 90 * time.Second

// ways holds all code that dials. Each runs until its context ends.
var ways = map[string]func(*testing.T, context.Context, *network){
	"get by adaptive":            gets("adaptive", true, 16),
	"get by adaptive, 1 each":    gets("adaptive", true, 1),
	"get by alg3":                gets("alg3", true, 0),
	"get by alg1 without rescue": gets("alg1", false, 0),
	"probe":                      gets("single", true, 0),
	"put by adaptive":            puts("adaptive", true, 64),
	"put by alg3":                puts("alg3", true, 0),
	"put without rescue":         puts("alg1", false, 0),
	"proxy, GET":                 proxies(http.MethodGet),
	"proxy, POST":                proxies(http.MethodPost),
}

// keep lists the ways that have open connections when a working server begins to fail, and the
// protocols of the server.
var keep = map[string][]string{
	"get by adaptive": {"h2", "http/1.1"},
	"get by alg3":     {"h2"},
	// Over HTTP/2 a full connection holds a mutex of net/http, which stops simulated time.
	"put by alg3": {"http/1.1"},
}

// passedOn are answers that a proxy passes on to its clients, which decide what follows.
var passedOn = []string{"503 and the end"}

// A failing server gets few connections, with every failure and every way to dial: the first
// connections, further ones, those after it has worked, and those of net/http itself.
func TestNoServerThatFailsIsStormed(t *testing.T) {
	all := slices.Sorted(maps.Keys(failures))
	for i, c := range cases() {
		for j, failure := range all {
			if strings.HasPrefix(c.way, "proxy") && slices.Contains(passedOn, failure) {
				continue
			}
			// Each case and each failure runs at least once.
			if racedetector.On && j%len(cases()) != i {
				continue
			}
			name, before := "from the start", (func(*end))(nil)
			if c.worked != "" {
				name, before = "after "+c.worked+" worked", works(c.worked)
			}
			t.Run(c.way+"/"+failure+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { count(t, c.way, failures[failure], before) })
			})
		}
	}
}

// dials is a way to dial, and the protocol of the server while it worked, "" if it never worked.
type dials struct{ way, worked string }

func cases() (all []dials) {
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		all = append(all, dials{way: way})
		for _, protocol := range keep[way] {
			all = append(all, dials{way, protocol})
		}
	}
	return all
}

// count fails if a server with this failure gets too many connections. The server fails from the
// start, or after it has worked as before.
func count(t *testing.T, way string, fails, before func(*end)) {
	n := newNetwork(fails)
	ctx, cancel := context.WithCancel(t.Context())
	if before != nil {
		n.serve = before
		time.AfterFunc(5*time.Second, func() { n.become(fails) })
		time.AfterFunc(5*time.Second+lasting, cancel)
	} else {
		time.AfterFunc(lasting, cancel)
	}
	begun := time.Now()
	ways[way](t, ctx, n)
	cancel()
	from := begun
	if before != nil {
		from = from.Add(5 * time.Second)
	}
	if most := n.most(from); most > allowed {
		t.Errorf("%d connections in a minute, at most %d are allowed", most, allowed)
	} else {
		t.Logf("%d connections in a minute, %d in all, %v", most, len(n.accepted), time.Since(begun))
	}
	n.end()
}

func options(n *network, algorithm string, rescue bool, most int) download.Options {
	found, err := schedule.Find(algorithm)
	if err != nil {
		panic(err)
	}
	o := download.Options{
		URL: &url.URL{Scheme: "https", Host: "server", Path: "/file"}, Links: n.links(),
		Scheduler: found.Scheduler(schedule.Parameters{UpperLimit: 1e6, FirstRequests: 1e6, Padding: 0.5, Segment: 1e6}),
		Overlap:   0.6, Window: time.Second, Rescue: rescue, GiveUp: 5 * time.Minute, TLS: &tls.Config{RootCAs: authority},
		Output: func() (download.Sink, error) { return nowhere{}, nil },
		Log:    slog.New(slog.DiscardHandler),
	}
	if most > 0 {
		o.Connections = &transfer.Connections{Most: most}
	}
	if algorithm == "single" {
		o.Links = o.Links[:1]
	}
	return o
}

func gets(algorithm string, rescue bool, most int) func(*testing.T, context.Context, *network) {
	return func(_ *testing.T, ctx context.Context, n *network) {
		download.Run(ctx, options(n, algorithm, rescue, most))
	}
}

func puts(algorithm string, rescue bool, most int) func(*testing.T, context.Context, *network) {
	return func(_ *testing.T, ctx context.Context, n *network) {
		upload.Run(ctx, toUpload(options(n, algorithm, rescue, most), 1<<30))
	}
}

// toUpload returns the options of an upload of so many bytes in ranges.
func toUpload(o download.Options, size quantity.Bytes) upload.Options {
	return upload.Options{
		Ranged: true, URL: o.URL, File: &noFile{}, Size: size, TLS: o.TLS, Links: o.Links, Scheduler: o.Scheduler,
		Overlap: o.Overlap, Window: o.Window, Rescue: o.Rescue, Connections: o.Connections, GiveUp: o.GiveUp, LowestRate: o.LowestRate,
	}
}

// proxies runs clients of a proxy. Each sends its next request after an answer.
func proxies(method string) func(*testing.T, context.Context, *network) {
	return func(_ *testing.T, ctx context.Context, n *network) {
		l := testkit.NewListener()
		p := proxy.New(proxy.Options{
			Engine: options(n, "adaptive", true, 64), Window: 8 << 20, Streams: 8, Log: slog.New(slog.DiscardHandler),
		})
		for range 3 {
			go func() {
				for ctx.Err() == nil {
					client(ctx, l, method)
					time.Sleep(10 * time.Millisecond)
				}
			}()
		}
		p.Serve(ctx, l)
	}
}

// ask has a client of a gateway ask once.
func ask(ctx context.Context, o download.Options) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l := testkit.NewListener()
	p := proxy.New(proxy.Options{Engine: o, Window: 8 << 20, Streams: 8, Log: o.Log})
	go func() {
		client(ctx, l, http.MethodGet)
		cancel()
	}()
	p.Serve(ctx, l)
}

// local is a connection of a client on this machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// client sends a request, and reads the answer to its end.
func client(ctx context.Context, l *testkit.Listener, method string) {
	here, there := net.Pipe()
	defer here.Close()
	defer context.AfterFunc(ctx, func() { here.Close() })()
	if !l.Offer(local{there}, ctx.Done()) {
		return
	}
	fmt.Fprintf(here, "%s /https://server/file HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", method)
	for in := bufio.NewReader(here); ; {
		answer, err := http.ReadResponse(in, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		if err != nil || answer.StatusCode >= http.StatusOK {
			return
		}
	}
}

// nowhere is an output that discards everything.
type nowhere struct{}

func (nowhere) Begin(transport.Resource, ranges.Range) ([]ranges.Range, error) { return nil, nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error)                         { return len(p), nil }
func (nowhere) Commit() ([]byte, error)                                        { return nil, nil }
func (nowhere) Abort(bool) error                                               { return nil }

// noFile is the file to upload.
type noFile struct{}

func (*noFile) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }
