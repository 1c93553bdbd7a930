package download

import (
	"math"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// deciding is a download in its middle: two links of sixteen connections each,
// on which a request is in flight, and the connection that asks next.
func deciding(free quantity.Bytes) (*download, *connection) {
	const size = 1e9
	d := newDownload(Options{Scheduler: schedule.Adaptive{}, Rescue: true, Connections: &transfer.Connections{Most: 16}})
	d.part = ranges.Range{Length: size}
	d.payload = ranges.NewPayload(d.part)
	d.payload.Take(size-free, math.MaxInt64)
	for x := range 2 {
		l := someLink(x)
		l.Growth = &schedule.Growth{Most: 16}
		d.links, d.connections = append(d.links, l), append(d.connections, l.first())
	}
	for x := range 30 {
		d.connections = append(d.connections, d.links[x%2].newConnection())
	}
	for x, c := range d.connections {
		c.index, c.session = x, &session{Conn: &transport.Conn{}}
		c.rtt = link.RoundTrip{Last: 40 * time.Millisecond, Min: 30 * time.Millisecond}
		r := &request{Range: ranges.Range{Length: 1e6}, limit: 1e6, received: 4e5, session: c.session}
		c.active, c.newest, c.expected = []*request{r}, r, r.left()
		c.pace.Begin(0, 0)
		c.pace.Add(time.Second, r.received)
	}
	return d, d.connections[20]
}

// someLink is a link with its first connection.
func someLink(index int) *linkState {
	return newLink(newCommonLink(index, transfer.Link{}, time.Second), nil)
}

// several is a link that may have several connections, with its first one.
func several() *linkState {
	l := someLink(0)
	l.Growth = &schedule.Growth{Most: 16}
	return l
}

// Decisions use memory that is there: of what is free, and of what others owe.
func TestADecisionAllocatesNothing(t *testing.T) {
	const now = 1050 * time.Millisecond
	for name, free := range map[string]quantity.Bytes{"of what is free": 5e8, "of what others owe": 0} {
		d, c := deciding(free)
		taken := 0
		allocations := testing.AllocsPerRun(100, func() {
			if d.choose(c, now).Length > 0 {
				taken++
			}
		})
		testkit.Holds(t, allocations == 0 && (taken > 0 || free == 0), "allocations for a decision, and ranges taken", name, allocations, taken)
	}
}

// In slow start a connection orders what comes soon; for who reads in order, no more than keeps it at work.
func TestWhatIsReadInOrderIsNotOrderedFarAhead(t *testing.T) {
	l := several()
	c := l.first()
	c.rtt.Min = 100 * time.Millisecond
	l.Together.Begin(0, 0)
	l.Together.Add(100*time.Millisecond, 100_000)
	c.pace.Begin(0, 0)
	c.pace.Add(100*time.Millisecond, 100_000)
	const now = 125 * time.Millisecond // 800 kB/s
	testkit.Same(t, c.pipe(now), schedule.MostOrder(100_000), "ordered ahead in slow start")
	l.shortQueue = true
	testkit.Same(t, c.pipe(now), 100_000, "ordered ahead for a reader in order")
	c.pace.Add(now, 900_000) // Came in a burst, after a lost packet.
	testkit.Same(t, c.pipe(now), 100_000, "ordered ahead")
	c.rtt.Min = 10 * time.Second
	l.Together.Add(now, 900_000)
	testkit.Same(t, c.pipe(now), schedule.MostOrder(1_000_000), "ordered ahead")
}

// A queue that orders have filled does not have more ordered.
func TestNoMoreIsOrderedTheLongerTheQueue(t *testing.T) {
	c := several().first()
	c.rtt.Min, c.idleDelay, c.leastDelay = 40*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	c.pace.Begin(0, 0)
	for now := time.Duration(0); now < 10*time.Second; now += 10 * time.Millisecond {
		c.pace.Add(now, 10_000) // 1 MB/s
	}
	for _, test := range []struct {
		delay time.Duration
		want  float64
	}{{80 * time.Millisecond, 100_000}, {100 * time.Millisecond, 125_000}, {400 * time.Millisecond, 125_000}} {
		c.delays = []time.Duration{test.delay}
		within(t, "what is ordered ahead, at a delay of "+test.delay.String(), float64(c.pipe(10*time.Second)), 0.98*test.want, 1.02*test.want)
	}
	c.idleDelay = 0 // Nothing is known of the link without its queue.
	within(t, "what is ordered ahead", float64(c.pipe(10*time.Second)), 490_000, 510_000)
}

// In slow start a connection orders no more than its part of what the link may carry.
func TestSlowStartDoesNotOrderMoreThanALinkCarries(t *testing.T) {
	l := several()
	c := l.first()
	c.rtt.Min = 100 * time.Millisecond
	connections := quantity.Bytes(l.Growth.Begin())
	c.pace.Begin(0, 0)
	c.pace.Add(100*time.Millisecond, 16_000)
	const now = 125 * time.Millisecond
	testkit.Same(t, c.pipe(now), schedule.MostOrder(16_000), "ordered ahead where nothing is known of the link")
	l.Shown.Add(10*time.Millisecond, 0)
	l.Shown.Add(20*time.Millisecond, 2_500) // 2 Mbit/s up, so 8 at most
	testkit.Same(t, c.pipe(now), 200_000/connections, "ordered ahead")
	l.Meter.Start(0)
	l.Meter.Add(100*time.Millisecond, 200_000)
	testkit.Same(t, c.pipe(now), 400_000/connections, "ordered ahead")
}

// What a connection delivered that has nothing left others deliver already.
func TestALinkIsNoFasterThanItsConnectionsTogether(t *testing.T) {
	const now = 1050 * time.Millisecond
	d, _ := deciding(0)
	l := d.links[0]
	l.Together.Begin(0, 0)
	l.Together.Add(time.Second, 8e5)
	all := d.merged(d.measured(now), now)[0].Rate
	for _, c := range l.connections[1:] {
		c.active = nil
	}
	got := d.merged(d.measured(now), now)[0].Rate
	testkit.Holds(t, got == l.Together.Rate(now) && got < all, "one of sixteen has work: its rate, of the link, and of all", got, l.Together.Rate(now), all)
	l.Together = throughput.NewPace(schedule.PaceWindow)
	testkit.Same(t, d.merged(d.measured(now), now)[0].Rate, 0, "nothing comes on the link")
}

// What others have ordered ahead only makes the first byte later.
func TestTheShortestDelayIsThatOfAnIdleConnection(t *testing.T) {
	l := several()
	c := l.first()
	c.rtt.Min = 20 * time.Millisecond
	c.idleDelay, c.leastDelay = 2*time.Second, 2*time.Second // in an outage
	c.delays = []time.Duration{300 * time.Millisecond, 40 * time.Millisecond}
	testkit.Same(t, c.idle(), 40*time.Millisecond, "the first byte is expected after")
	// It was alone while others of its link filled the queue, which is gone.
	c.leastDelay, c.delays = 25*time.Millisecond, c.delays[:1]
	for queue, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 35 * time.Millisecond, time.Second: 300 * time.Millisecond,
	} {
		c.rtt.Last = c.rtt.Min + queue
		testkit.Same(t, c.idle(), want, "the first byte, behind a queue", queue)
	}
	c.delays = []time.Duration{300 * time.Millisecond, 40 * time.Millisecond}
	l.Growth, c.idleDelay, c.leastDelay = nil, 30*time.Millisecond, 30*time.Millisecond
	testkit.Same(t, c.idle(), 40*time.Millisecond, "with much ordered ahead the first byte is expected after")
	l.shortQueue = true
	testkit.Same(t, c.idle(), 30*time.Millisecond, "with little ordered ahead the first byte is expected after")
}

// What the first of three had of a range when the second was given up is not the
// second's, should the first be given up, too, after the third.
func TestWhatIsRepeatedTwiceIsNotCountedAsTheFirstRepeats(t *testing.T) {
	d, _ := deciding(0)
	late, vain, again := d.connections[0].active[0], d.connections[2].active[0], d.connections[1].active[0]
	for _, r := range []*request{vain, again} {
		r.Range, r.received, r.cancel = ranges.Range{Offset: late.next(), Length: late.left()}, 0, func() {}
		late.duplicate, r.duplicate, r.isDuplicate = r, late, true
		late.received += 1000
		if r == vain {
			d.endDuplicate(vain, time.Second)
		}
	}
	again.detach()
	late.received = 5e5
	testkit.Holds(t, !late.isSplit && late.duplicate == nil, "the bytes of a request count no more whose repetitions are gone")
	// The one that goes on alone may be repeated as any other.
	testkit.Holds(t, !again.isDuplicate && !vain.isDuplicate, "a request repeats nothing any more, and is taken for one that does")
}

// The time in which the last bytes were on their way is no time without work: the next
// bytes were asked for long before.
func TestALinkWithLittleOrderedIsNoFasterThanItIs(t *testing.T) {
	const bytes, each = 16_000, 40 * time.Millisecond // 3.2 Mbit/s
	d, _ := deciding(0)
	l := d.links[0]
	c := l.first()
	l.shortQueue, c.idleDelay, c.leastDelay, c.delays = true, 20*time.Millisecond, 20*time.Millisecond, []time.Duration{300 * time.Millisecond}
	l.Growth, c.pace = nil, throughput.NewPace(schedule.PaceWindow)
	r := &request{session: c.session}
	c.active = []*request{r}
	c.begun(0, 0)
	now := time.Duration(0)
	for i := range 60 {
		now += each
		c.delivered(bytes, now)
		if i%3 == 2 {
			next := &request{session: c.session, issued: now - 100*time.Millisecond}
			c.active = append(c.active, next)
			d.endRequest(c, r, now)
			r = next
		}
	}
	within(t, "the rate of the link", c.pace.Rate(now).MegabitsPerSecond(), 3.1, 3.5)
}

// A connection that repeats in vain what another one of its own link owes leaves it to other links.
func TestAnotherLinkRepeatsWhatOnesOwnRepeatsInVain(t *testing.T) {
	d, _ := deciding(0)
	wifi, again, lte := d.connections[0], d.connections[2], d.connections[1]
	late, duplicate := wifi.active[0], again.active[0]
	late.duplicate, duplicate.duplicate, duplicate.isDuplicate = duplicate, late, true
	duplicate.received = 0
	testkit.Holds(t, d.mayDuplicate(late, wifi, lte), "another link may not repeat it")
	testkit.Holds(t, !d.mayDuplicate(late, wifi, d.connections[4]) && !d.mayDuplicate(duplicate, again, lte), "a third connection of its link may, or the repetition may be repeated")
	duplicate.received = 1
	testkit.Holds(t, !d.mayDuplicate(late, wifi, lte), "another link may repeat what comes")
	duplicate.received = 0
	again.active, lte.active = nil, append(lte.active, duplicate)
	testkit.Holds(t, !d.mayDuplicate(late, wifi, lte), "a link may repeat what it repeats already")
}

// A connection that has nothing left takes a part of what another one of its link
// would bring late, unless the link is full, or the server has sent it already.
func TestAConnectionHelpsAnotherOneOfItsLink(t *testing.T) {
	const now = 1050 * time.Millisecond
	for name, test := range map[string]struct {
		left, received quantity.Bytes
		rtt            time.Duration
		takes          bool
	}{
		"one is late":                {1e6, 1e5, 31 * time.Millisecond, true},
		"packets wait at the link":   {1e6, 1e5, 40 * time.Millisecond, false},
		"what is left is on its way": {2.9e4, 1e5, 37 * time.Millisecond, false},
		"what has just been ordered": {1e6, 0, 31 * time.Millisecond, false},
	} {
		d, _ := deciding(0)
		stealer, late := d.connections[2], d.connections[4]
		for _, c := range d.connections {
			c.active, c.expected, c.session.heardAt, c.rtt.Last = nil, 0, now, test.rtt
		}
		r := &request{Range: ranges.Range{Length: test.left + test.received}, limit: test.left + test.received, received: test.received, session: late.session}
		r.issued = now - time.Millisecond
		if test.received > 0 {
			r.issued = 0
		}
		late.active, late.newest, late.expected = []*request{r}, r, test.left
		late.session.Conn.Socket = closedSocket{}
		late.pace = throughput.NewPace(schedule.PaceWindow)
		late.pace.Begin(0, 0)
		late.pace.Add(time.Second, 1e5) // 4e5 of the others.
		each := d.measured(now)
		taken := d.stealWithin(stealer, each, now)
		ok := taken.Length > 0
		testkit.Holds(t, ok == test.takes && (!ok || taken.End() == test.left+test.received && taken.Length >= test.left/2 && taken.Length < test.left), name, taken)
		testkit.Holds(t, d.stealWithin(d.connections[3], each, now).Length == 0, "another link takes it as one of the same", name)
	}
}

func BenchmarkDecision(b *testing.B) {
	const now = 1050 * time.Millisecond
	d, c := deciding(5e8)
	b.ReportAllocs()
	for b.Loop() {
		if next := d.choose(c, now); next.Length > 0 {
			d.payload.Release(next.Range)
		}
	}
}

// alone leaves each link its first connection.
func alone(d *download) {
	d.connections = d.connections[:2]
	for _, l := range d.links {
		l.connections = l.connections[:1]
	}
}

// A link without a carrier keeps its share for as long as it may come back at any
// moment, also when it has nothing to deliver by which it could be seen to be silent.
func TestALinkThatIsDownLosesItsShare(t *testing.T) {
	d, _ := deciding(5e8)
	alone(d)
	down, other := d.links[0], d.links[1]
	for _, c := range d.connections {
		c.link.Growth, c.active, c.newest, c.expected = nil, nil, nil, 0
		c.pace.End(time.Second)
	}
	down.down, down.downSince = true, time.Second
	for _, test := range []struct {
		passed time.Duration
		keeps  bool
	}{{50 * time.Millisecond, true}, {2 * firstSilence, false}} {
		now := down.downSince + test.passed
		testkit.Same(t, d.measured(now)[0].Usable, test.keeps, "it can be used without its carrier", test.passed)
		works := d.works(now)
		testkit.Same(t, schedule.Share(other.index, works, 100_000) < 100_000, test.keeps, "the other link keeps a share", test.passed)
	}
}

// The first bytes of a link that is back may come just when they were expected.
// That they took no time does not mean that the link brings everything at once.
func TestFirstBytesInNoTimeOrderLittle(t *testing.T) {
	const now = time.Second
	d, _ := deciding(5e8)
	alone(d)
	c := d.connections[0]
	c.link.Growth = nil
	c.pace = throughput.NewPace(schedule.PaceWindow)
	c.pace.Begin(0, now)
	c.pace.Add(now+256, 16384)
	within(t, "bytes of an order after 16384 in 256 ns", float64(d.choose(c, now+256).Length), 1, float64(schedule.MostOrder(16384)))
}
