package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/tests/testkit"
)

// asking reports whether TCP will send a keep-alive probe from one of the local ports: its timer
// is then that of keep-alive (proc(5)).
func asking(t *testing.T, ports map[string]bool) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	for row := range strings.Lines(string(table)) {
		fields := strings.Fields(row)
		if _, port, ok := strings.Cut(fields[1], ":"); ok && ports[port] && strings.HasPrefix(fields[5], "02:") {
			return true
		}
	}
	return false
}

// A connection with an outstanding answer sends probes. An idle one sends none.
func TestAnIdleConnectionSendsNoProbes(t *testing.T) {
	for _, secure := range []bool{false, true} { // HTTP/1.1 and HTTP/2.
		more := make(chan struct{})
		o := serve(t, secure, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "begin")
			w.(http.Flusher).Flush()
			select {
			case <-more:
			case <-r.Context().Done():
			}
			fmt.Fprint(w, "end")
		})
		var mu sync.Mutex
		ports := map[string]bool{}
		address, _ := start(t, o, func(o *Options) {
			for i, l := range o.Engine.Links {
				dial := l.Dial
				o.Engine.Links[i].Dial = func(ctx context.Context, address string) (link.Socket, error) {
					conn, err := dial(ctx, address)
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						ports[fmt.Sprintf("%04X", conn.LocalAddr().(*net.TCPAddr).Port)] = true
					}
					return conn, err
				}
			}
		})
		until := func(what string, want bool) {
			t.Helper()
			testkit.Eventually(t, fmt.Sprintf("%s, TLS %v: asked is %v", what, secure, want), func() bool {
				mu.Lock()
				defer mu.Unlock()
				return asking(t, ports) == want
			})
		}
		for range 2 {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if response, body := do(t, direct(t), http.MethodGet, "http://"+address+"/"+o.URL+"/f", nil); string(body) != "beginend" {
					t.Errorf("%s, %q", response.Status, body)
				}
			}()
			until("under way", true)
			more <- struct{}{}
			<-ended
			until("kept", false)
		}
		testkit.Same(t, len(ports), 1)
	}
}
