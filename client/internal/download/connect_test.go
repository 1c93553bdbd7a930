package download

import (
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// Only a connection of several whose link is silent asks again that soon.
func TestWhoAsksAgainSoon(t *testing.T) {
	for _, test := range []struct {
		several, suspect bool
		rtt              time.Duration
		want             time.Duration
	}{
		{false, true, 0, 0},
		{true, false, 0, 0},
		{true, true, 0, transfer.LeastBackoff},
		{true, true, 20 * time.Millisecond, transfer.CheckInterval},
		{true, true, time.Second, 500 * time.Millisecond},
	} {
		c := someLink(0).first()
		c.rtt.Last, c.suspect = test.rtt, test.suspect
		if test.several {
			c.link.Growth = &schedule.Growth{}
		}
		testkit.Same(t, c.betweenAttempts(), test.want, test)
	}
}

// Only handshakes show a rate, of a link of several connections that has carried nothing. A kept connection
// has no handshake: what it received long ago shows no rate, and the link's last handshake counts.
func TestOnlyHandshakesShowARate(t *testing.T) {
	keeping(t, func(t *testing.T, d *download, conn *transport.Conn, u *url.URL, _ *cable) {
		defer conn.Close()
		random := rand.New(rand.NewPCG(51, 163))
		for range 200 {
			l := someLink(0)
			several := random.IntN(2) == 0
			if several {
				l.Growth = &schedule.Growth{Most: 16}
			}
			var shown schedule.Shown
			var carried quantity.Bytes
			var handshake time.Duration
			for range 1 + random.IntN(6) {
				time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
				if carried == 0 && random.IntN(4) == 0 {
					carried = 1000
					l.Meter.Add(time.Since(d.start), carried)
				}
				event := &rundir.Connected{}
				if random.IntN(2) == 0 {
					event.TCP = 1 + random.Int64N(1e8)
					handshake = time.Duration(event.TCP)
					if several && carried == 0 {
						shown.Add(time.Since(d.start), conn.Received())
					}
				}
				c := l.first()
				c.session, c.notBefore = nil, time.Hour
				d.now = time.Since(d.start)
				d.connected(c, u, conn, event)
				d.actions = nil
				testkit.Same(t, l.Shown, shown, "several connections, bytes carried", several, carried)
				testkit.Same(t, c.handshake, handshake, "the handshake")
			}
		}
	})
}
