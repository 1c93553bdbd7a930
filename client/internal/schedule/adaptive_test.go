package schedule

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// A connection without a first byte requests as little the second time as the first time. For a reader in order a slow
// link requests only what arrives before another link takes it over.
func TestAdaptiveRequestsAQuarterOfASecond(t *testing.T) {
	for _, test := range []struct {
		link          Link
		want, inOrder quantity.Bytes
	}{
		{Link{}, FirstOrder, FirstOrder},
		{Link{Requests: 1}, OpeningOrder, OpeningOrder},
		{Link{Requests: 1, Arrived: 1}, FirstOrder, MinimumRequest},
		{Link{Arrived: 10e6, Pace: 80e6}, 2_500_000, 2_500_000},
		{Link{Arrived: 10e6, Pace: 1e6}, FirstOrder, FirstOrder}, // 31 kB
		{Link{Arrived: 10e6, Pace: 0.5e6}, FirstOrder, MinimumRequest},
		{Link{Arrived: 100e3, Pace: 80e6}, FirstOrder + 200e3, FirstOrder + 200e3}, // measured over too few bytes
	} {
		known := Known{Links: []Link{test.link}}
		testkit.Same(t, Adaptive{}.Next(0, known), test.want, test.link)
		known.InOrder = true
		testkit.Same(t, Adaptive{}.Next(0, known), test.inOrder, "in order", test.link)
	}
}

// grown returns the number of connections after each round of a link that delivers rate(n)
// with n connections.
func grown(most, rounds int, queue time.Duration, rate func(n int) quantity.Rate) (counts []int) {
	s := &simulated{g: &Growth{Most: most}, now: -leastRound}
	s.n = s.g.Begin()
	s.round(0, queue)
	for range rounds {
		counts = append(counts, s.round(rate(s.n), queue))
	}
	return counts
}

func TestGrowth(t *testing.T) {
	const queue = 30 * time.Millisecond
	each := func(n int) quantity.Rate { return quantity.Rate(n) * 5e6 }
	for name, test := range map[string]struct {
		most      int
		queue     time.Duration
		rate      func(int) quantity.Rate
		last, top int
	}{
		"each delivers more":         {16, 0, each, 16, 16},
		"6 are allowed":              {6, 0, each, 6, 6},
		"1 is allowed":               {1, 0, each, 1, 1},
		"each delivers into a queue": {16, queue, each, 1, startConnections},
		// A queue stands with any number of connections, so one is enough.
		"they only queue": {16, queue, func(int) quantity.Rate { return 30e6 }, 1, startConnections},
		// Closing goes on even if fewer connections deliver less. Behind a lost packet nothing
		// arrives for as long as the queue is, and the queue may come from other traffic.
		"fewer deliver less": {16, queue, func(n int) quantity.Rate { return quantity.Rate(min(n, 3)) * 10e6 }, 1, startConnections},
		// The server may limit a link. Then no queue forms, and further connections bring nothing.
		"more bring nothing": {16, 0, func(int) quantity.Rate { return 30e6 }, startConnections, 2 * startConnections},
	} {
		got := grown(test.most, 40, test.queue, test.rate)
		tried := 0
		for i := 1; i < len(got); i++ {
			if got[i] > got[i-1] {
				tried++
			}
		}
		if last := got[len(got)-1]; last != test.last || slices.Max(got) != test.top || test.queue > 0 && tried > 0 || tried > 4 {
			t.Errorf("%s: connections are %v, want at most %d and %d at last", name, got, test.top, test.last)
		}
	}
}

// simulated is a link with a round trip time of 20 ms. g decides in rounds how many
// connections it has.
type simulated struct {
	g     *Growth
	n     int
	now   time.Duration
	total quantity.Bytes
}

func (s *simulated) round(rate quantity.Rate, queue time.Duration) int {
	const rtt = 20 * time.Millisecond
	step := max(leastRound, FewTrips*rtt+queue)
	s.now += step
	s.total += quantity.Bytes(rate.Over(step))
	f := Flow{Busy: true, Total: s.total}
	for x := range s.n {
		f.Add(rtt+queue, rtt, 1, x == 0)
	}
	s.n = s.g.Count(s.now, f)
	return s.n
}

func begun(t *testing.T) *simulated {
	t.Helper()
	s := &simulated{g: &Growth{Most: 16}}
	s.n = s.g.Begin()
	s.now = -leastRound
	s.round(0, 0)
	return s
}

// With a large window a connection's slow start takes longer than a round.
func TestNewConnectionsHaveTimeForSlowStart(t *testing.T) {
	s := begun(t)
	s.round(1e9, 0)
	if s.round(1e9, 0) != 2*startConnections {
		t.Fatalf("%d connections of a link without a queue, want %d", s.n, 2*startConnections)
	}
	if s.round(1e9, 0); s.n != 2*startConnections {
		t.Fatalf("they are %d in the middle of their slow start", s.n)
	}
	if s.round(1.2e9, 0); s.n < 2*startConnections {
		t.Errorf("they are %d, though the link has become faster", s.n)
	}
}

// Once the link has become faster, the rest of that time is not waited for.
func TestNewConnectionsThatHelpEndTheirTime(t *testing.T) {
	s := begun(t)
	s.round(1e9, 0)
	s.round(1e9, 0)
	if s.g.patience == 0 {
		t.Fatal("there is no time to wait for")
	}
	for range 2 {
		if s.round(1.12e9, 0); s.n != 2*startConnections {
			t.Fatalf("%d connections in the rounds that show their effect", s.n)
		}
	}
	if s.round(1.12e9, 0); s.n != s.g.Most {
		t.Errorf("%d connections a round later, want %d", s.n, s.g.Most)
	}
}

// Where slow start takes less than a round, a doubling has one round to show its effect. A first failure is
// followed by a pause of 8 rounds, the second one by 16.
func TestADoublingWithoutEffectLastsOneRound(t *testing.T) {
	s := begun(t)
	before := 0
	for _, pause := range []int{8, 16} {
		rounds := 0
		for s.round(30e6, 0) == startConnections && rounds < 20 {
			rounds++
		}
		testkit.Holds(t, s.n == 2*startConnections && s.g.patience == 0 && rounds >= before && rounds <= before+1, "connections, after rounds", s.n, rounds)
		s.round(30e6, 0)
		testkit.Holds(t, s.n == startConnections && s.g.pause == pause, "connections, and rounds of pause", s.n, s.g.pause, pause)
		before = pause
	}
}

// A link with all allowed connections tries no more, and so has nothing to undo and to pause for.
func TestGrowthTriesNothingAtTheMost(t *testing.T) {
	s := &simulated{g: &Growth{Most: startConnections}, n: startConnections}
	s.g.Begin()
	for range 10 {
		if s.round(30e6, 0); s.n != startConnections || s.g.without != 0 || s.g.pause != 0 {
			t.Fatalf("%d connections, %d before a doubling, %d rounds of pause", s.n, s.g.without, s.g.pause)
		}
	}
}

// Connections that survive an outage start again with a small window. Rounds after it show
// what new ones add.
func TestALinkGetsNewConnectionsAfterAnOutage(t *testing.T) {
	s := begun(t)
	s.round(30e6, 0)
	s.g.Back(startConnections, false)
	if s.round(0, 0); s.n != 2*startConnections {
		t.Fatalf("%d connections of a link that is back, want %d", s.n, 2*startConnections)
	}
	if s.round(30e6, 0); s.n < 2*startConnections {
		t.Errorf("%d connections, though nothing shows that more help", s.n)
	}
	for range 40 {
		s.round(30e6, 50*time.Millisecond)
	}
	testkit.Holds(t, s.n <= 2, s.n)
	before := s.n
	if s.g.Back(0, false); s.g.count != before {
		t.Errorf("%d connections of a link that was only slow, want %d", s.g.count, before)
	}
	if s.g.Back(0, true); s.g.count != startConnections {
		t.Errorf("%d connections of a link that begins anew, want %d", s.g.count, startConnections)
	}
	s.g = &Growth{Most: 8}
	s.g.Begin()
	s.g.Back(startConnections, false)
	testkit.Same(t, s.g.count, 8)
}

// The queue stays until one connection too many is closed.
func TestGrowthRestoresTheLastConnectionWhenTheQueueIsGone(t *testing.T) {
	s := begun(t)
	for range 4 {
		s.round(30e6, 30*time.Millisecond)
	}
	before := s.n
	if before >= startConnections {
		t.Fatalf("%d connections where a queue stands", before)
	}
	if s.round(29e6, 0); s.n != before+1 {
		t.Errorf("%d connections when the queue is gone, want %d", s.n, before+1)
	}
	for range 4 {
		s.round(29e6, 30*time.Millisecond)
	}
	testkit.Holds(t, s.n >= before+1, s.n, before+1)
}

// What one connection back does not show is tried by a doubling.
func TestGrowthRestoresOneConnectionOnce(t *testing.T) {
	s := begun(t)
	for range 4 {
		s.round(30e6, 30*time.Millisecond)
	}
	s.round(29e6, 0)
	restored := s.n
	if s.round(29e6, 0); s.n != 2*restored {
		t.Errorf("%d connections without a queue, want twice the %d that are restored", s.n, restored)
	}
}

// If a queue forms, the new connections fill the link, even if it is no faster.
func TestGrowthKeepsConnectionsThatFillTheLink(t *testing.T) {
	s := begun(t)
	s.round(30e6, 0)
	s.round(30e6, 0)
	more := s.n
	if s.round(31e6, 30*time.Millisecond); s.n != more || s.g.pause > 0 {
		t.Errorf("%d connections of %d, %d rounds of pause", s.n, more, s.g.pause)
	}
}

func TestGrowthClosesAConnectionIfTheOthersFillTheLink(t *testing.T) {
	for _, test := range []struct {
		first, other quantity.Rate
		rtt          time.Duration
		want         bool
	}{
		{first: 9, other: 1, rtt: 40 * time.Millisecond, want: true},
		{first: 1, other: 9, rtt: 40 * time.Millisecond, want: false},
		{first: 1, other: 9, rtt: 400 * time.Millisecond, want: true},
		{first: 9, other: 1, rtt: 31 * time.Millisecond, want: false},
	} {
		var f Flow
		f.Add(test.rtt, 30*time.Millisecond, test.first, true)
		f.Add(test.rtt, 30*time.Millisecond, test.other, false)
		testkit.Same(t, f.fillsWithoutOne(), test.want, test)
	}
}

func TestGrowthIgnoresAnIdleLink(t *testing.T) {
	g := &Growth{Most: 16}
	n := g.Begin()
	for i := range 50 {
		if got := g.Count(time.Duration(i)*time.Second, Flow{}); got != n {
			t.Fatalf("%d connections, want %d", got, n)
		}
	}
	g.Lost()
	testkit.Same(t, g.Count(time.Minute, Flow{}), n-1)
}

func TestConnectionsOfALinkEndTogether(t *testing.T) {
	link := Work{Rate: 40e6, Left: 300}
	for _, test := range []struct {
		connection Work
		share      quantity.Bytes
		want       quantity.Bytes
	}{
		{Work{Rate: 10e6, Left: 100}, 700, 150}, // a quarter of 1000
		{Work{Rate: 10e6, Left: 250}, 700, 0},
		{Work{Rate: 30e6, Left: 0}, 700, 700},
		{Work{}, 700, 700}, // unknown
	} {
		if got := ConnectionShare(test.connection, link, test.share); got != test.want {
			t.Errorf("of %d bytes %+v takes %d, want %d", int64(test.share), test.connection, int64(got), int64(test.want))
		}
	}
}

// Connections without a first byte divide a link's share. No part is below MinimumRequest.
func TestNewConnectionsDivideTheShare(t *testing.T) {
	link := Work{Rate: 40e6, Connections: 3}
	for share, want := range map[quantity.Bytes]quantity.Bytes{300_000: 100_000, 30_000: MinimumRequest, 9_000: 9_000} {
		if got := ConnectionShare(Work{}, link, share); got != want {
			t.Errorf("of %d bytes a new connection takes %d, want %d", int64(share), int64(got), int64(want))
		}
	}
	if got := ConnectionShare(Work{Left: 90_000}, Work{Rate: 40e6, Connections: 3, Left: 90_000}, 210_000); got != MinimumRequest {
		t.Errorf("one that has its part already takes %d", int64(got))
	}
}

func TestJoinIgnoresUnusableConnections(t *testing.T) {
	w := Work{RTT: 0, Delay: 0}
	w.Join(Work{Usable: true, RTT: 80 * time.Millisecond, Delay: 90 * time.Millisecond})
	w.Join(Work{})
	testkit.Holds(t, w.Usable && w.RTT == 80*time.Millisecond && w.Delay == 90*time.Millisecond, w)
}

func TestJoinAddsConnections(t *testing.T) {
	w := Work{Usable: true, Rate: 10e6, Left: 5, Tail: 1, Delay: 30 * time.Millisecond, RTT: 20 * time.Millisecond, Arrived: 7}
	w.Join(Work{Usable: true, Rate: 5e6, Left: 6, Tail: 2, Delay: 20 * time.Millisecond, RTT: 25 * time.Millisecond, Arrived: 8})
	want := Work{Usable: true, Rate: 15e6, Left: 11, Tail: 3, Delay: 20 * time.Millisecond, RTT: 20 * time.Millisecond, Arrived: 15}
	testkit.Same(t, w, want)
}

func TestStartRoom(t *testing.T) {
	for _, test := range []struct {
		most quantity.Rate
		trip time.Duration
		want quantity.Bytes
	}{
		{0, 100 * time.Millisecond, math.MaxInt64},
		{15e6, 100 * time.Millisecond, 62_500}, // 375 kB in two round trips, of six
		{15e6, 10 * time.Millisecond, MinimumRequest},
	} {
		if got := StartRoom(test.most, 6, test.trip); got != test.want {
			t.Errorf("%+v: %d bytes", test, int64(got))
		}
	}
}
