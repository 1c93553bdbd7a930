package link

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// mute accepts connections and never answers. open is how many the other end has not closed.
type mute struct {
	net.Listener
	open, most atomic.Int32
}

func newMute(t *testing.T) *mute {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.2:0")
	testkit.OK(t, err)
	m := &mute{Listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			m.most.Store(max(m.most.Load(), m.open.Add(1)))
			running.Go(func() {
				defer conn.Close()
				defer m.open.Add(-1)
				for p := make([]byte, 4096); ; {
					if _, err := conn.Read(p); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return m
}

// A handshake that takes long tries further connections only if the link has room for them. A
// connection that the transfer makes takes the room of one that is tried.
func TestATriedConnectionNeedsRoom(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ most, dialled, later, want int32 }{
		"there is room for all":       {8, 3, 0, 6},
		"there is room for one":       {4, 3, 0, 4},
		"there is none":               {3, 3, 0, 3},
		"a later one takes that room": {4, 3, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newMute(t)
			_, port, _ := net.SplitHostPort(server.Addr().String())
			names := serve(t, "127.0.0.1", zone{a: []string{"127.0.0.2"}, ttl: 60})
			d := Dialer{Device: "lo", NameServers: []netip.AddrPort{names.address}, Memory: new(Memory)}
			room := NewRoom(int(test.most))
			ctx := WithRoom(t.Context(), room)
			var open []Socket
			dial := func() {
				conn, err := d.Dial(ctx, host+":"+port)
				testkit.OK(t, err)
				t.Cleanup(func() { conn.Close() })
				open = append(open, conn)
				go tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake()
			}
			for range test.dialled {
				dial()
			}
			time.Sleep((smallAfter + 1) * leastSilence)
			for range test.later {
				dial()
			}
			testkit.Eventually(t, "as many connections are open as there is room for", func() bool { return server.open.Load() == test.want })
			if most := server.most.Load(); most > test.want+test.later {
				t.Errorf("%d connections were open at a time, want at most %d", most, test.want)
			}
			for _, conn := range open {
				conn.Close()
				conn.Close() // It counts once.
			}
			testkit.Eventually(t, "all are closed and counted", func() bool {
				room.mu.Lock()
				defer room.mu.Unlock()
				return server.open.Load() == 0 && room.open == 0 && len(room.trying) == 0
			})
		})
	}
}
