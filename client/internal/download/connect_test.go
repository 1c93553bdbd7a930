package download

import (
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
		for _, test := range []struct {
			several bool
			carried quantity.Bytes
			tcp     int64
			shows   bool
		}{{true, 0, 1, true}, {true, 0, 0, false}, {true, 1000, 1, false}, {false, 0, 1, false}} {
			c := someLink(0).first()
			if test.several {
				c.link.Growth = &schedule.Growth{Most: 16}
			}
			c.link.Meter.Add(0, test.carried)
			c.handshake, c.notBefore = 5, time.Hour
			var shown schedule.Shown
			for d.now = time.Millisecond; d.now < 4*time.Millisecond; d.now += time.Millisecond {
				c.session = nil
				d.connected(c, u, conn, &rundir.Connected{TCP: test.tcp})
				if test.shows {
					shown.Add(d.now, conn.Received())
				}
			}
			testkit.Same(t, c.link.Shown, shown, test)
			testkit.Same(t, c.handshake, time.Duration(5-4*test.tcp), test)
		}
		d.actions = nil
	})
}
