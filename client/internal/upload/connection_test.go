package upload

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// wire is a socket of which the kernel tells what a test says.
type wire struct {
	link.Socket
	told      link.RoundTrip
	discarded bool
}

func (w *wire) RoundTrip() (link.RoundTrip, error) { return w.told, nil }
func (w *wire) LimitUnsent(int) error              { return nil }
func (w *wire) FillSegments(bool) error            { return nil }
func (w *wire) DiscardUnsent() error               { w.discarded = true; return nil }
func (w *wire) Close() error                       { return nil }

// still is a connection that is there.
type still struct{ httpConn }

func (still) Usable() bool { return true }
func (still) Close() error { return nil }

// scene is an upload that nobody runs, of so many bytes, over links with so many
// connections each.
func scene(size quantity.Bytes, connections ...int) *upload {
	all := ranges.Range{Length: size}
	u := &upload{
		Options: Options{Rescue: true, Size: size, Scheduler: schedule.Adaptive{}, Window: time.Second},
		start:   time.Now().Add(-time.Minute),
		free:    ranges.NewSet(all), missing: ranges.NewSet(all),
	}
	u.ctx, u.end = context.WithCancelCause(context.Background())
	for i, count := range connections {
		l := u.newLink(i, transfer.Link{Name: []string{"wifi", "lte"}[i]})
		l.Growth = &schedule.Growth{Most: count}
		for range l.Growth.Begin() {
			l.connections = append(l.connections, &connection{
				link: l, conn: still{}, sockets: &sockets{},
				pace: throughput.NewPace(schedule.PaceWindow), rtt: 20 * time.Millisecond, leastRTT: 20 * time.Millisecond,
			})
		}
		u.links = append(u.links, l)
	}
	return u
}

// gives has the connection send a range, of which all was taken and nothing got through.
func (c *connection) gives(r ranges.Range, at time.Duration) *request {
	one := &request{Range: r, connection: c, taken: r.Length, issued: at, moved: at, cancel: func(error) {}}
	c.link.upload.free.Remove(r)
	c.active = append(c.active, one)
	c.pending, c.heard = c.pending+r.Length, at
	return one
}

// brings has the connection be as fast as that.
func (c *connection) brings(rate quantity.Rate, now time.Duration) {
	c.pace.Begin(now-time.Second, 0)
	for at := now - time.Second; at <= now; at += 50 * time.Millisecond {
		c.pace.Add(at, quantity.Bytes(rate.Over(50*time.Millisecond)))
	}
}

// Over HTTP/1.1 a link has several connections, of which some may be idle; what
// gets through on one is enough.
func TestAConnectionIsSilentOverWhichNothingGetsThrough(t *testing.T) {
	for _, gets := range []bool{true, false} {
		c := scene(1000, 1).links[0].connections[0]
		busy, idle := &wire{told: link.RoundTrip{Acknowledged: 100, Sending: 20 * time.Millisecond}}, &wire{}
		c.sockets.all = []*socket{{Socket: idle}, {Socket: busy}}
		c.sockets.all[1].written.Store(1000)
		now := 10 * time.Second
		c.look(now)
		if gets {
			busy.told.Acknowledged += 100
		}
		c.look(now + transfer.LeastSilence + time.Millisecond)
		testkit.Holds(t, c.silent != gets, gets, c.silent)
		busy.told.Acknowledged += 100
		if c.look(now + time.Minute); c.silent {
			t.Error("it is silent, though something got through again")
		}
		busy.told.Acknowledged = 1000
		c.look(now + 2*time.Minute)
		if c.look(now + 3*time.Minute); c.silent || c.left() != 0 {
			t.Error("it is silent, though there is nothing to send")
		}
	}
}

// Where the first failure ends the upload, a link that is away at the start is none.
func TestOnlyRescueGivesUpConnecting(t *testing.T) {
	for _, rescue := range []bool{true, false} {
		u := scene(1000)
		u.Rescue = rescue
		ctx, cancel := u.attempt(0)
		if _, timed := ctx.Deadline(); timed != rescue {
			t.Errorf("rescue %v: an attempt to connect has a deadline: %v", rescue, timed)
		}
		cancel()
	}
}

// Of what is sent for TLS TCP repeats what was lost later and later.
func TestTLSThatIsNotAnsweredIsTriedAgain(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	testkit.OK(t, err)
	defer listener.Close() // It accepts, and says nothing.
	for _, rescue := range []bool{true, false} {
		o := serve(t, newOdd(), true)
		o.Rescue, o.URL.Host = rescue, listener.Addr().String()
		l := &linkState{Link: o.Links[0], upload: &upload{Options: o}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*securePatience)
		defer cancel()
		if _, _, err := l.open(ctx, 0, 0); errors.Is(err, errInsecure) != rescue {
			t.Errorf("rescue %v: %v", rescue, err)
		}
	}
}

// Who has something that does not get through does not repeat what others have.
func TestAStalledConnectionRepeatsNothing(t *testing.T) {
	now := 10 * time.Second
	for _, stalled := range []bool{true, false} {
		u := scene(100_000, 1, 1)
		owing, idle := u.links[0].connections[0], u.links[1].connections[0]
		owing.gives(ranges.Range{Length: 100_000}, now-time.Second)
		idle.brings(8e6, now)
		idle.heard = now
		if stalled {
			idle.pending, idle.heard = 1, now-time.Second
		}
		if _, _, ok := (shares{u}).late(idle, now); ok == stalled {
			t.Errorf("stalled %v: %v", stalled, ok)
		}
	}
}

// Others need not wait until nothing else is left, once a link is gone. One
// connection may be silent for long while packets of others fill the queue.
func TestOthersSendWhatASilentLinkHas(t *testing.T) {
	for _, gone := range []bool{true, false} {
		u := scene(1000, 2)
		l := u.links[0]
		for i, c := range l.connections {
			c.connecting, c.abandon = true, func() {}
			c.sockets.all = []*socket{{Socket: &wire{told: link.RoundTrip{Sending: 20 * time.Millisecond}}}}
			if i == 0 || gone {
				c.sockets.all[0].written.Store(300)
				c.gives(ranges.Range{Offset: quantity.Bytes(300 * i), Length: 300}, time.Second)
			}
		}
		owed := 1000 - u.free.Bytes()
		if l.tend(time.Second + patience - time.Millisecond); 1000-u.free.Bytes() != owed {
			t.Errorf("gone %v: of %d bytes %d are left to others already", gone, int64(owed), int64(u.free.Bytes()))
		}
		if l.tend(time.Second + patience + time.Millisecond); (u.free.Bytes() == 1000) != gone {
			t.Errorf("gone %v: %d bytes are free", gone, int64(u.free.Bytes()))
		}
	}
}

// What a dead connection has would else be sent by the kernel when the link is back.
func TestTheKernelSendsNoMoreOfAConnectionThatIsGivenUp(t *testing.T) {
	for _, owes := range []bool{true, false} {
		u := scene(1000, 1)
		c := u.links[0].connections[0]
		w := &wire{}
		c.sockets.all = []*socket{newSocket(w, &sockets{})}
		if owes {
			c.gives(ranges.Range{Length: 1000}, 0)
		}
		if c.close(errSilent); w.discarded != owes || c.conn != nil || len(c.active) > 0 || u.free.Bytes() != 1000 {
			t.Errorf("owes %v: discarded %v, active %d, free %d bytes", owes, w.discarded, len(c.active), int64(u.free.Bytes()))
		}
	}
}

func TestWhatIsLateIsSentAgain(t *testing.T) {
	const size = 100_000
	now := 10 * time.Second
	all := ranges.Range{Length: size}
	tests := map[string]struct {
		harm func(owing, idle *connection)
		want bool
	}{
		"the other one is as fast": {func(owing, _ *connection) { owing.brings(8e6, now) }, false},
		"it is slow":               {func(owing, _ *connection) { owing.brings(1e6, now) }, true},
		"it is stalled":            {func(owing, _ *connection) { owing.brings(8e6, now); owing.heard = now - 200*time.Millisecond }, true},
		"nothing comes any more": {func(owing, _ *connection) {
			owing.pace.Begin(0, 0)
			owing.pace.Add(100*time.Millisecond, 1000)
			owing.heard, owing.active[0].issued = now, 0
		}, true},
		"it has just begun":   {func(owing, _ *connection) { owing.active[0].issued, owing.heard = now, now }, false},
		"the server is quiet": {func(owing, _ *connection) { owing.pending, owing.active[0].moved = 0, now-2*patience }, true},
		"of the idle one nothing is known but that the other is stalled": {func(owing, idle *connection) {
			owing.brings(8e6, now)
			owing.heard = now - 200*time.Millisecond
			idle.pace = throughput.NewPace(schedule.PaceWindow)
		}, true},
		"the idle one has something to do": {func(owing, idle *connection) {
			owing.brings(1e6, now)
			idle.gives(ranges.Range{Offset: size, Length: 1}, now)
		}, false},
	}
	for name, test := range tests {
		u := scene(size, 1, 1)
		owing, idle := u.links[0].connections[0], u.links[1].connections[0]
		owing.gives(all, now)
		idle.brings(8e6, now)
		test.harm(owing, idle)
		if r, from, ok := (shares{u}).late(idle, now); ok != test.want || ok && (r != all || from != "wifi") {
			t.Errorf("%s: %v from %q, %v", name, r, from, ok)
		}
	}
}

// The first of several connections that have a range decides when it will be there. One that was given
// to two is not given to a third, unless neither gets it through.
func TestARangeEndsWithTheFirstThatSendsIt(t *testing.T) {
	const size = 100_000
	all, now := ranges.Range{Length: size}, 10*time.Second
	chance := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		u := scene(size, 2, 2)
		idle := u.links[1].connections[1]
		idle.brings(8e6, now)
		var senders []*connection
		want, least, comes := math.Inf(1), math.Inf(1), 0
		for _, c := range []*connection{u.links[0].connections[0], u.links[0].connections[1], u.links[1].connections[0]} {
			if chance.IntN(2) == 0 {
				continue
			}
			c.gives(all, now)
			c.brings(quantity.Rate(1e5*(1+chance.IntN(100))), now)
			if chance.IntN(2) == 0 {
				c.heard = now - 10*time.Second
			} else {
				comes++
			}
			least = min(least, c.ends(0, now))
			senders = append(senders, c)
		}
		switch {
		case len(senders) == 1:
			want = least
		case comes > 0:
			want = 0
		}
		testkit.Same(t, (shares{u}).ends(all, idle, now), want, comes)
		if got := (shares{u}).ends(ranges.Range{Length: 1}, idle, now); !math.IsInf(got, 1) {
			t.Errorf("nobody sends it, and it ends in %v s", got)
		}
		if len(senders) > 0 && comes > 0 && !senders[0].isLost(senders[0].active[0], now) {
			testkit.Same(t, (shares{u}).ends(all, senders[0], now), 0)
		}
	}
}

// Of its own link a connection takes only what is stalled.
func TestWhatIsLateOnTheSameLink(t *testing.T) {
	now := time.Second
	for _, stalled := range []bool{true, false} {
		u := scene(100_000, 2)
		owing, idle := u.links[0].connections[0], u.links[0].connections[1]
		owing.gives(ranges.Range{Length: 100_000}, now)
		owing.brings(1e6, now)
		idle.brings(8e6, now)
		if stalled {
			owing.heard = now - 200*time.Millisecond
		}
		if _, _, ok := (shares{u}).late(idle, now); ok != stalled {
			t.Errorf("stalled %v: %v", stalled, ok)
		}
	}
}

// What no server confirms both links have sent in the end. It is lost then, and each
// sends its own once more, later each time.
func TestWhatIsLostIsSentOnceMore(t *testing.T) {
	all := ranges.Range{Length: 100_000}
	sent := 10 * time.Second
	u := scene(all.Length, 1, 1)
	for _, l := range u.links {
		l.connections[0].brings(8e6, sent)
		l.connections[0].gives(all, sent)
		l.connections[0].pending = 0
		l.connections[0].pace.End(sent)
	}
	c := u.links[0].connections[0]
	for range 3 {
		last := c.active[len(c.active)-1].moved
		due := last + patience<<len(c.active)
		if _, _, ok := (shares{u}).next(c, due); ok {
			t.Errorf("%v after it was sent for the %d. time it is sent again", due-last, len(c.active))
		}
		due += time.Millisecond
		if r, from, ok := (shares{u}).next(c, due); !c.wants(due) || !ok || r != all || from == "" {
			t.Errorf("%v after it was sent for the %d. time: %v from %q, %v", due-last, len(c.active), r, from, ok)
		}
		c.gives(all, due)
		c.pending = 0
	}
}

// Little that is left goes to the link that brings most, but not to one whose server
// is silent: nobody would send it.
func TestTheRestIsNotForALinkThatIsNotAnswered(t *testing.T) {
	u := scene(103_000, 1, 1)
	now := u.now()
	hung, idle := u.links[0].connections[0], u.links[1].connections[0]
	hung.brings(80e6, now)
	u.links[0].Together = hung.pace
	idle.brings(8e6, now)
	u.links[1].Together = idle.pace
	hung.gives(ranges.Range{Length: 100_000}, now)
	hung.pending = 0
	hung.pace.End(now)
	idle.pace.End(now)
	if _, _, ok := (shares{u}).next(idle, now); ok {
		t.Error("the slow one has the rest at once")
	}
	if r, _, ok := (shares{u}).next(idle, now+patience+time.Millisecond); !ok || r.Offset != 100_000 {
		t.Errorf("%v, %v: nobody has the rest", r, ok)
	}
}

// What the server has is not sent once more while the other request for it ends.
func TestWhatIsConfirmedIsNotSentAgain(t *testing.T) {
	now := time.Second
	u := scene(200_000, 1, 1)
	owing, idle := u.links[0].connections[0], u.links[1].connections[0]
	late := owing.gives(ranges.Range{Length: 100_000}, 0)
	var cancelled error
	late.cancel = func(err error) { cancelled = err }
	idle.brings(8e6, now)
	again := &request{Range: late.Range, connection: idle, cancel: func(error) {}}
	idle.confirmed(again)
	if _, _, ok := (shares{u}).late(idle, now); ok || cancelled != errTaken || u.free.Bytes() != 100_000 {
		t.Errorf("sent again %v, the other request ends by %v, %d bytes are free", ok, cancelled, int64(u.free.Bytes()))
	}
}

// The first connection of a link may fail while another one leaves.
func TestALinkKeepsAConnection(t *testing.T) {
	u := scene(1000, 2)
	l := u.links[0]
	l.connections[1].leaving = true
	l.connections[0].conn, l.connections[1].conn = nil, nil
	u.broken(l.connections[0], errors.New("broken"))
	l.connections[0].connecting = true
	if l.tend(time.Second); len(l.connections) == 0 {
		t.Error("a link has no connection any more")
	}
}

func TestEveryConnectionTakesItsShare(t *testing.T) {
	now := time.Second
	u := scene(1_000_000, 1, 1)
	fast, slow := u.links[0].connections[0], u.links[1].connections[0]
	fast.brings(9e6, now)
	slow.brings(1e6, now)
	if size := (shares{u}).size(fast, now); math.Abs(float64(size)-281_250) > 30_000 {
		t.Errorf("the fast one takes %d bytes, not a quarter of a second", int64(size))
	}
	u.free = ranges.NewSet(ranges.Range{Length: 60_000})
	if size := (shares{u}).size(fast, now); size > 57_000 || size < 50_000 {
		t.Errorf("the fast one takes %d bytes of 60000", int64(size))
	}
	fast.pending = 20_000_000
	if size := (shares{u}).size(fast, now); size > 0 {
		t.Errorf("who has enough takes %d bytes more", int64(size))
	}
}

// naive has a part for each link. Who is there first does not take that of a link
// which only connects.
func TestALinkThatConnectsKeepsItsPart(t *testing.T) {
	u := scene(1000, 1, 1)
	u.Scheduler = schedule.Naive{}
	there, connects := u.links[0], u.links[1]
	there.Growth, connects.Growth = nil, nil
	there.Requests = 1
	connects.connections[0].sockets = nil
	if size := (shares{u}).size(there.connections[0], time.Second); size != 0 {
		t.Errorf("a link takes %d bytes of another one's part", int64(size))
	}
	connects.problem = errSilent
	if size := (shares{u}).size(there.connections[0], time.Second); size < 1000 {
		t.Errorf("a link takes %d bytes of what nobody sends", int64(size))
	}
}

func TestAConnectionHasSomethingToSendAhead(t *testing.T) {
	now := time.Second
	u := scene(10_000_000, 1)
	c := u.links[0].connections[0]
	c.brings(8e6, now)
	most := c.pipe(now)
	testkit.Holds(t, most >= quantity.Bytes(quantity.Rate(8e6).Over(c.rtt)) && most <= 200_000, int64(most))
	one := c.gives(ranges.Range{Length: most + 1}, now)
	testkit.Holds(t, !c.wants(now), "it wants more than it has to have")
	c.pending = most - 1
	testkit.Holds(t, c.wants(now), "it wants nothing, and will run dry")
	if one.taken = 0; c.wants(now) {
		t.Error("it wants more than it can take")
	}
}

// What alg3-history asks for depends on how much the link varied.
func TestTheSchedulerIsToldOfTheVariation(t *testing.T) {
	l := scene(1000, 1).links[0]
	l.Meter.Start(0)
	for i := range 10 {
		l.Meter.Add(time.Duration(i+1)*time.Second, quantity.Bytes(1000*(i%2+1)))
	}
	if v := l.known(10 * time.Second).Variation; v == 0 || v != l.Meter.Variation() {
		t.Errorf("the scheduler is told of a variation of %v, %v was measured", v, l.Meter.Variation())
	}
}
