package download

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// withSeveral downloads by adaptive with that many connections at most.
func withSeveral(t *testing.T, most int, handler http.HandlerFunc, change func(*Options, *network)) (rundir.Summary, *log) {
	t.Helper()
	return rescued(t, schedule.Adaptive{}, handler, "", func(o *Options, n *network) {
		o.Connections.Most = most
		if change != nil {
			change(o, n)
		}
	})
}

// A simLink is as fast for each of its connections, as one that loses packets
// is: so all that are allowed are used, and never more.
func TestALinkThatIsNotFullGetsConnections(t *testing.T) {
	for _, most := range []int{1, 2, 6} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			var cables []*cable
			summary, events := withSeveral(t, most, slowly, func(_ *Options, n *network) { cables = []*cable{n.wifi, n.lte} })
			for _, c := range cables {
				testkit.Same(t, c.most, most, "connections of a link at a time")
			}
			// The server sends 200 kB/s for each request, of which a connection has one or two.
			within(t, "download time", seconds(summary.Download), 6/(0.8*float64(most)), 2+6/(0.4*float64(most)))
			for _, s := range of[*rundir.Sample](events) {
				testkit.Holds(t, s.Link == "wifi" || s.Link == "lte", "a sample is of", s.Link)
			}
		})
	}
}

// The last bytes of a link that goes silent come by another one at once, and none is counted twice (checkEvents).
func TestLastBytesComeTwiceRatherThanLate(t *testing.T) {
	for at := 100; at <= 500; at += 50 {
		t.Run(fmt.Sprintf("%d ms", at), func(t *testing.T) {
			summary, _ := withSeveral(t, 1, content, func(_ *Options, n *network) {
				time.AfterFunc(time.Duration(at)*time.Millisecond, func() { n.wifi.set(0) })
			})
			// lte alone takes 1.2 s for all.
			within(t, "download time", seconds(summary.Download), 0.4, 1.3)
			for name, l := range summary.Links {
				testkit.Holds(t, l.Wasted <= 1<<20, "wasted bytes", int64(l.Wasted), name)
			}
		})
	}
}

// slowDisk is a sink that takes its time for some of what is written.
type slowDisk struct {
	Sink
	pause func() time.Duration
}

func (s slowDisk) WriteAt(p []byte, offset int64) (int, error) {
	time.Sleep(s.pause())
	return s.Sink.WriteAt(p, offset)
}

func pause(o *Options, pause func() time.Duration) {
	open := o.Output
	o.Output = func() (Sink, error) {
		sink, err := open()
		return slowDisk{sink, pause}, err
	}
}

// What is received and not yet written is repeated by nobody, and nothing is lost of what is repeated.
func TestADiskThatPauses(t *testing.T) {
	for seed := range racedetector.Part(20) {
		random := rand.New(rand.NewPCG(seed, 17))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			summary, _ := withSeveral(t, 1+random.IntN(6), content, func(o *Options, n *network) {
				var mu sync.Mutex
				times := rand.New(rand.NewPCG(seed, 3))
				pause(o, func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					if seed%3 > 0 && times.IntN(4) > 0 {
						return 0
					}
					return time.Duration(times.Int64N(int64(600 * time.Millisecond)))
				})
				if seed%2 == 0 {
					n.harm(random, 2*time.Second)
				}
			})
			within(t, "download time", seconds(summary.Download), 0.1, 40)
		})
	}
}

// The connections of a link that was away begin anew with a small window, so it
// gets new ones. A short pause, as in a handover, costs them nothing.
func TestALinkThatIsBackGetsNewConnections(t *testing.T) {
	for _, test := range []struct{ away, least int }{{100, 0}, {600, 5}} {
		back := time.Duration(100+test.away) * time.Millisecond
		_, events := withSeveral(t, 16, content, func(_ *Options, n *network) {
			time.AfterFunc(100*time.Millisecond, func() { n.wifi.set(0); n.lte.set(0.02); n.wifiChange <- link.Down })
			time.AfterFunc(back, func() { n.wifi.set(1); n.wifiChange <- link.Up })
		})
		got := connectionsOf(events, "wifi", back, back+150*time.Millisecond)
		testkit.Holds(t, got >= test.least && got <= test.least*6/5, "new connections, milliseconds away, and how many should be", got, test.away, test.least)
	}
}

// Whose old connections are all dead begins with six, once, however long it takes to connect the first again.
func TestALinkBeginsAnewOnce(t *testing.T) {
	const back = 3900 * time.Millisecond
	_, events := withSeveral(t, 16, slowly, func(o *Options, n *network) {
		far := wifi
		far.rtt, far.cable = 250*time.Millisecond, n.wifi
		o.Links[0].Dial = n.dial(far)
		time.AfterFunc(900*time.Millisecond, func() { n.wifi.set(0); n.wifi.freeze(); n.lte.set(0.001); n.wifiChange <- link.Down })
		time.AfterFunc(back, func() { n.wifi.set(1); n.wifiChange <- link.Up })
	})
	testkit.Same(t, connectionsOf(events, "wifi", back, back+1600*time.Millisecond), 6, "connections of a link that begins anew")
}

// full is a connection of a link in whose queue packets wait until a time.
type full struct {
	link.Socket
	until time.Time
}

func (s full) RoundTrip() (link.RoundTrip, error) {
	trip, err := s.Socket.RoundTrip()
	if time.Now().Before(s.until) {
		trip.Last = 3 * trip.Min
	}
	return trip, err
}

// Connections that a full link does not need are kept, without an effect of an outage on
// them: it goes on with these as soon as anybody answers, and makes no others.
func TestALinkThatIsBackGoesOnWithKeptConnections(t *testing.T) {
	const gone, back = 1500 * time.Millisecond, 2500 * time.Millisecond
	var before, after int
	_, events := withSeveral(t, 6, slowly, func(o *Options, n *network) {
		n.lte.set(0.001)
		way := wifi
		way.cable = n.wifi
		end := time.Now().Add(gone)
		way.afterDial = func(s link.Socket) (link.Socket, error) { return full{s, end}, nil }
		o.Links[0].Dial = n.dial(way)
		time.AfterFunc(gone, func() {
			n.wifi.set(0)
			n.wifi.mu.Lock()
			before = n.wifi.open()
			n.wifi.mu.Unlock()
		})
		time.AfterFunc(back, func() { n.wifi.set(1) })
		time.AfterFunc(back+100*time.Millisecond, func() {
			n.wifi.mu.Lock()
			defer n.wifi.mu.Unlock()
			for _, at := range n.wifi.dials {
				if at.After(end.Add(back - gone)) {
					after++
				}
			}
		})
	})
	kept := 0
	for _, c := range of[*rundir.Connected](events) {
		at := time.Duration(c.T)
		switch {
		case c.Link != "wifi":
		case at > gone+transfer.LeastSilence && at < back: // Before nobody can know.
			t.Errorf("a connection was put to use at %v, in the outage", at)
		case at >= back && at < back+100*time.Millisecond && c.TCP == 0:
			kept++
		}
	}
	// The one of the first request may be closed: the server sends it what nobody wants.
	testkit.Holds(t, before >= 5 && kept != 0, "open connections before the outage, and those used after it", before, kept)
	testkit.Holds(t, after <= 2, "connections were made after the outage", after)
}

// connectionsOf is how many a link got between two times.
func connectionsOf(events *log, name string, after, before time.Duration) (n int) {
	for _, c := range of[*rundir.Connected](events) {
		if at := time.Duration(c.T); c.Link == name && at > after && at < before {
			n++
		}
	}
	return n
}

// A carrier that goes for a moment while the connections are made costs the link none.
func TestACarrierThatFlapsWhileConnecting(t *testing.T) {
	summary, events := withSeveral(t, 6, slowly, func(_ *Options, n *network) {
		n.lte.set(0.002)
		time.AfterFunc(15*time.Millisecond, func() { n.wifiChange <- link.Down })
		time.AfterFunc(50*time.Millisecond, func() { n.wifiChange <- link.Up })
	})
	testkit.Holds(t, connectionsOf(events, "wifi", 0, time.Hour) >= 6, "six connections")
	// 200 kB/s for each request.
	within(t, "download time", seconds(summary.Download), 6/2.4, 6)
}

// Servers take so many requests of a connection. Another one comes in its place.
func TestConnectionsWhoseServerSaysGoodbye(t *testing.T) {
	var mu sync.Mutex
	served := map[*tls.ConnectionState]int{}
	slow := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		served[r.TLS]++
		if served[r.TLS] == 10 {
			w.Header().Set("Connection", "close")
		}
		mu.Unlock()
		content(&slowBody{w}, r)
	}
	summary, events := withSeveral(t, 6, slow, func(_ *Options, n *network) { n.lte.set(0.002) })
	testkit.Holds(t, connectionsOf(events, "wifi", 0, time.Hour) >= 10, "six connections, and one for each that was ended")
	within(t, "download time", seconds(summary.Download), 6/2.4, 3.5)
}

// A server that closes idle connections is not asked again and again while a reader pauses, and nobody misses them.
// Afterwards there are as many as before.
func TestConnectionsThatAreClosedWhileAReaderPauses(t *testing.T) {
	for _, test := range []struct {
		connections int
		idle, pause time.Duration
		least, most int // of a link
	}{
		{1, 100 * time.Millisecond, 10 * time.Minute, 2, 100},
		{6, 3 * time.Second, 20 * time.Second, 11, 11 + 6}, // Another first one each time, since it has to hear of the end.
	} {
		var got bytes.Buffer
		summary, events := streamed(t, slowly, func(r io.Reader) {
			_, _ = io.CopyN(&got, r, 500_000)
			time.Sleep(test.pause)
			_, _ = got.ReadFrom(r)
		}, func(o *Options, n *simNet) {
			n.server.IdleTimeout = test.idle
			o.Scheduler, o.Connections = schedule.Adaptive{}, &transfer.Connections{Most: test.connections}
		})
		for _, name := range []string{"wifi", "lte"} {
			n := connectionsOf(events, name, 0, time.Hour)
			testkit.Holds(t, n >= test.least && n <= test.most, "connections before, in and after the pause", n, name, test)
		}
		within(t, "download time", seconds(summary.Download), test.pause.Seconds(), test.pause.Seconds()+18/float64(test.connections))
		testkit.Holds(t, bytes.Equal(got.Bytes(), file), "the file differs", got.Len())
	}
}

// The slowest of a link's further connections is given up first; one that is leaving anyway before all.
func TestTheSlowestConnectionIsGivenUpFirst(t *testing.T) {
	d, _ := deciding(0)
	l := d.links[0]
	for x, c := range l.connections {
		c.pace.Add(time.Second, quantity.Bytes(1e6-1e4*(x/2))) // Two are equally fast.
	}
	leaving, still := l.connections[1], l.connections[2]
	leaving.leaving, still.pace = true, throughput.NewPace(schedule.PaceWindow)
	got := l.surplus(1, time.Second)
	want := append([]*connection{leaving, still}, l.connections[3:]...)
	slices.Reverse(want[2:])
	testkit.SameList(t, got, want, "the order is not by rate")
}

// closedSocket is a connection that is closed already.
type closedSocket struct{ net.Conn }

func newClosedSocket() closedSocket {
	conn, other := net.Pipe()
	conn.Close()
	other.Close()
	return closedSocket{conn}
}

func (closedSocket) Await(quantity.Bytes, quantity.Bytes)   {}
func (closedSocket) Owes(bool)                              {}
func (closedSocket) Trial() *link.Trial                     { return nil }
func (closedSocket) Ask() error                             { return nil }
func (closedSocket) Answered() (time.Duration, bool, error) { return 0, false, errors.ErrUnsupported }
func (closedSocket) RoundTrip() (link.RoundTrip, error) {
	return link.RoundTrip{}, errors.ErrUnsupported
}

// waiting is a connection on which nothing comes between two times.
type waiting struct {
	link.Socket
	from, until time.Time
}

func (w waiting) Read(p []byte) (int, error) {
	n, err := w.Socket.Read(p)
	if now := time.Now(); now.After(w.from) && now.Before(w.until) {
		time.Sleep(time.Until(w.until))
	}
	return n, err
}

// A server that serves one connection of a client at a time, and closes others, still serves that one after an outage.
func TestAServerThatClosesAnotherConnectionGoesOnWithTheFirst(t *testing.T) {
	summary, _ := withSeveral(t, 1, content, func(o *Options, n *network) {
		start := time.Now()
		o.GiveUp = time.Minute
		o.Links = o.Links[:1]
		dial := n.dial(simLink{rate: 8e6, rtt: 30 * time.Millisecond, cable: n.wifi})
		var dials atomic.Int32
		o.Links[0].Dial = func(ctx context.Context, address string) (link.Socket, error) {
			switch {
			case dials.Add(1) == 1:
				s, err := dial(ctx, address)
				return waiting{s, start.Add(time.Second), start.Add(5 * time.Second)}, err
			case time.Since(start) < 3*time.Second:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			n.wifi.mu.Lock()
			others := n.wifi.open()
			n.wifi.mu.Unlock()
			if others == 0 {
				return dial(ctx, address)
			}
			time.Sleep(30 * time.Millisecond)
			return newClosedSocket(), nil
		}
	})
	within(t, "download time", seconds(summary.Download), 8, 14)
}

// keeping has a download with a connection of a link, and how that is cabled, tested.
func keeping(t *testing.T, test func(t *testing.T, d *download, conn *transport.Conn, u *url.URL, c *cable)) {
	t.Helper()
	simulated(t, content, func(t *testing.T, n *simNet) {
		c := newCable()
		way := simLink{rate: 8e6, rtt: 60 * time.Millisecond, cable: c}
		u := &url.URL{Scheme: "https", Host: "server", Path: "/file"}
		socket, err := n.dial(way)(t.Context(), "")
		testkit.OK(t, err)
		conn, err := transport.Open(t.Context(), socket, nil, &tls.Config{RootCAs: authority, NextProtos: []string{"h2"}}, nil, u)
		testkit.OK(t, err)
		d, _ := deciding(0)
		d.Pool, d.ctx, d.start = newPool(forever), t.Context(), time.Now()
		test(t, d, conn, u, c)
	})
}

// Who is given up while it is about to be connected takes no kept connection along.
func TestWhoIsGivenUpTakesNoKeptConnection(t *testing.T) {
	keeping(t, func(t *testing.T, d *download, conn *transport.Conn, u *url.URL, c *cable) {
		l := d.links[0]
		l.first().url = u
		d.Pool.put(l.Name, u, conn)
		d.handle(does(func(d *download) {
			d.add(l)
			d.remove(d.connections[len(d.connections)-1], time.Second)
		}))
		d.wg.Wait()
		d.Pool.Close()
		time.Sleep(time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		if open := c.open(); open != 0 {
			t.Errorf("%d connections are open of a download that has ended", open)
			conn.Close()
		}
	})
}

// A connection on which something is still to come for nothing is not kept: nobody would count it.
func TestAConnectionIsKeptWhenNothingIsToCome(t *testing.T) {
	for _, stale := range []quantity.Bytes{0, 400_000} {
		keeping(t, func(t *testing.T, d *download, conn *transport.Conn, u *url.URL, _ *cable) {
			c := d.connections[2]
			c.url, c.active, c.leaving = u, nil, true
			c.session = &session{Conn: conn, stale: stale}
			d.remove(c, time.Second)
			d.perform()
			testkit.Same(t, d.Pool.take(c.link.Name, u) != nil, stale == 0, "kept with bytes to come", int64(stale))
			conn.Close()
		})
	}
}

// What the server had not sent when it was cancelled never comes, and what a link was
// like when it was left to others is not known for ever: it is asked again. A film was
// interrupted for a minute and a half while Wi-Fi, which had been slow, had nothing to do.
func TestALinkThatWasSlowIsAskedAgain(t *testing.T) {
	keeping(t, func(t *testing.T, d *download, conn *transport.Conn, _ *url.URL, _ *cable) {
		defer conn.Close()
		c := d.connections[0]
		c.active, c.newest, c.expected = nil, nil, 0
		c.session = &session{Conn: conn, stale: 50_000}
		now := 10 * time.Second
		d.listen(c, c.session, now) // The handshake has come.
		c.pace.Add(now, 1000)
		c.pace.End(now)
		for _, step := range []struct {
			after        time.Duration
			stale        quantity.Bytes
			reads, known bool
		}{
			{100 * time.Millisecond, 50_000, true, true},
			{firstSilence + 100*time.Millisecond, 0, true, false},
			{firstSilence + 100*time.Millisecond, 0, false, true},
		} {
			d.listen(c, c.session, now+step.after)
			testkit.Same(t, c.session.stale, step.stale, "bytes to come after the last one", step.after)
			d.window = nil
			if step.reads {
				d.window = reorder.NewWindow(1000)
			}
			testkit.Same(t, d.measured(now + step.after)[0].Rate > 0, step.known, "a rate after the last byte, read in order", step.after, step.reads)
		}
	})
}
