package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

// deafen drops all that arrives on the origin's connections, like a dead link.
func (o *origin) deafen(t *testing.T) {
	t.Helper()
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, conn := range o.conns {
		tcp, _ := below[*net.TCPConn](conn)
		raw, err := tcp.SyscallConn()
		testkit.OK(t, err)
		var filterErr error
		if err := raw.Control(func(fd uintptr) {
			filterErr = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
		}); err != nil || filterErr != nil {
			t.Fatal(err, filterErr)
		}
	}
}

// A connection that was kept while its link died delays a request only briefly.
func TestADeadKeptConnection(t *testing.T) {
	for _, test := range []struct {
		name   string
		secure bool
		method string
		links  int
	}{
		{"HTTP", false, http.MethodGet, 2},
		{"HTTPS", true, http.MethodHead, 2},
		{"one link", false, http.MethodGet, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := serve(t, test.secure, func(w http.ResponseWriter, r *http.Request) {
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file[:1000]))
			})
			address, _ := start(t, o, func(o *Options) {
				o.Engine.Links = o.Engine.Links[:test.links]
			})
			for range 2 {
				if response, _ := do(t, direct(t), test.method, "http://"+address+"/"+o.URL+"/f", nil); response.StatusCode != 200 || response.ContentLength != 1000 {
					t.Errorf("%s, Content-Length %d", response.Status, response.ContentLength)
				}
				o.deafen(t)
			}
		})
	}
}

// Links that are first used at the same time share no TLS configuration, nor with the engine.
func TestLinksShareNoTLSConfiguration(t *testing.T) {
	o := serve(t, true, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "small") })
	var config *tls.Config
	var all *routes
	start(t, o, func(o *Options) {
		config = o.Engine.TLS
		all = newRoutes(o.Engine, nil)
	})
	defer all.close()
	var both sync.WaitGroup
	for _, route := range all.all {
		both.Go(func() {
			request, _ := http.NewRequest(http.MethodGet, o.URL+"/f", nil)
			response, err := all.over(route, request)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.ProtoMajor != 2 {
				t.Errorf("%s, %v", response.Proto, err)
			}
			response.Body.Close()
		})
	}
	both.Go(func() { config.Clone() })
	both.Wait()
	testkit.Holds(t, config.NextProtos == nil, config.NextProtos)
}

// A slow server is asked once.
func TestASlowServer(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	o := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			time.Sleep(silence + time.Second) // This server is slow.
		}
		fmt.Fprint(w, "slow")
	})
	address, _ := start(t, o, nil)
	for n := range int64(2) {
		if response, got := get(t, direct(t), "http://"+address+"/"+o.URL+"/f"); response.StatusCode != 200 || string(got) != "slow" || requests.Load() != n+1 {
			t.Errorf("%s %q after %d requests, want %d", response.Status, got, requests.Load(), n+1)
		}
	}
}
