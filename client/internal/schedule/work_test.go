package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

func work(rate float64, left quantity.Bytes, delay time.Duration) Work {
	return Work{Usable: true, Rate: quantity.Rate(8 * rate * kB), Left: left * kB, Delay: delay}
}

func TestShare(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name  string
		works []Work
		free  quantity.Bytes
		want  []quantity.Bytes // kB
	}{
		{"in proportion to the rates", []Work{work(3000, 0, 0), work(1000, 0, 0)}, 4000, []quantity.Bytes{3000, 1000}},
		{"less to a link that is at work", []Work{work(1000, 500, 0), work(1000, 0, 0)}, 1500, []quantity.Bytes{500, 1000}},
		{"less to a link that begins late", []Work{work(1000, 0, 0), work(1000, 0, 500*ms)}, 1500, []quantity.Bytes{1000, 500}},
		{"nothing to a link that would end late", []Work{work(1000, 0, 0), work(1000, 5000, 0)}, 1000, []quantity.Bytes{1000, 0}},
		{"nothing to a link that is out", []Work{work(1000, 0, 0), {Rate: 8 * 1000 * kB}}, 1000, []quantity.Bytes{1000, 0}},
		{"nothing to a link that stands still", []Work{work(1000, 0, 0), work(0, 100, 0)}, 1000, []quantity.Bytes{1000, 0}},
		{"all while nothing is known", []Work{work(0, 0, 0), work(0, 0, 0)}, 1000, []quantity.Bytes{1000, 1000}},
	} {
		for x, want := range test.want {
			if got := Share(x, test.works, test.free*kB); got < want*kB || got > want*kB+1 {
				t.Errorf("%s: link %d takes %d bytes, want %d kB", test.name, x, got, want)
			}
		}
	}
}

func TestSteal(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name          string
		works         []Work
		victim, bytes quantity.Bytes // kB
	}{
		{"half from an equal", []Work{work(1000, 0, 0), work(1000, 1000, 0)}, 1, 500},
		{"less after a delay", []Work{work(1000, 0, 200*ms), work(1000, 1000, 0)}, 1, 400},
		{"less from a link that is faster", []Work{work(1000, 0, 0), work(3000, 3000, 0)}, 1, 750},
		{"all from a link that stands still", []Work{work(1000, 0, 0), work(0, 1000, 0)}, 1, 1000},
		{"from a link that ends last", []Work{work(1000, 0, 0), work(1000, 500, 0), work(1000, 1000, 0)}, 2, 500},
		{"less by a link that has something to wait for", []Work{{Usable: true, Rate: 8 * 1000 * kB, Tail: 200 * kB}, work(1000, 1000, 0)}, 1, 400},
		{"none the more from whose tail is useless", []Work{work(1000, 0, 0), {Usable: true, Rate: 8 * 1000 * kB, Left: 1000 * kB, Tail: 1000 * kB}}, 1, 500},
		{"nothing while at work as long", []Work{work(1000, 1000, 0), work(1000, 1000, 0)}, 0, 0},
		{"nothing that gains too little", []Work{work(1000, 0, 0), work(10_000, 220, 0)}, 0, 0},
		{"nothing from nobody", []Work{work(1000, 0, 0), work(1000, 0, 0)}, 0, 0},
		{"nothing by a link that stands still", []Work{work(0, 0, 0), work(1000, 1000, 0)}, 0, 0},
	} {
		largest := make([]quantity.Bytes, len(test.works))
		for i, w := range test.works {
			largest[i] = w.Left
		}
		victim, bytes := Steal(0, test.works, largest)
		if quantity.Bytes(victim) != test.victim || bytes < test.bytes*kB || bytes > test.bytes*kB+1 {
			t.Errorf("%s: %d bytes of link %d, want %d kB of %d", test.name, bytes, victim, test.bytes, test.victim)
		}
	}
	if _, bytes := Steal(0, []Work{work(1000, 0, 0), work(0, 1000, 0)}, []quantity.Bytes{0, 300 * kB}); bytes != 300*kB {
		t.Errorf("%d bytes of requests of 300 kB", bytes)
	}
}

// What gains less than 20 ms stays. 1 MB/s takes 100 ms for 100 kB.
func TestWorkMovesForAGainOf20Milliseconds(t *testing.T) {
	const ms = time.Millisecond
	for end, want := range map[float64]bool{0.119: false, 0.121: true, 0.1: false, 0.09: false, 1: true} {
		testkit.Same(t, work(1000, 0, 0).Sooner(100*kB, end), want, end)
	}
	for name, test := range map[string]struct {
		stealer, victim Work
		steals          bool
	}{
		// Alone after 38 and 42 ms, together after half of it.
		"both end 19 ms sooner": {work(10_000, 0, 0), work(10_000, 380, 0), false},
		"both end 21 ms sooner": {work(10_000, 0, 0), work(10_000, 420, 0), true},
		// Together 50 ms sooner, but the victim starts slowly and ends 10 ms after it would alone.
		"a victim in slow start": {
			work(1000, 0, 0),
			Work{Usable: true, Rate: 8 * 1000 * kB, Left: 100 * kB, RTT: 10 * ms, Arrived: 1},
			false,
		},
	} {
		_, bytes := Steal(0, []Work{test.stealer, test.victim}, []quantity.Bytes{0, test.victim.Left})
		testkit.Same(t, (bytes > 0), test.steals, name)
	}
}

// A connection in slow start becomes faster.
func TestStealWhileConnectionsStart(t *testing.T) {
	const rtt = 100 * time.Millisecond
	starting := func(rate float64, left, arrived quantity.Bytes) Work {
		return Work{Usable: true, Rate: quantity.Rate(8 * rate * kB), Left: left * kB, Delay: rtt, RTT: rtt, Arrived: arrived * kB}
	}
	for _, test := range []struct {
		name            string
		stealer, victim Work
		want            quantity.Bytes // kB
	}{
		// At this rate 240 ms more; in slow start 133 ms.
		{"nothing from a link that ends soon by itself", starting(1000, 0, 10_000), starting(250, 60, 25), 0},
		{"half from a link that has started", starting(1000, 0, 10_000), starting(250, 60, 1000), 28},
		{"half from a link that cannot be faster", starting(1000, 0, 10_000), Work{
			Usable: true, Rate: 8 * 250 * kB, Left: 60 * kB, Delay: rtt, RTT: rtt, Arrived: 25 * kB, Bandwidth: 8 * 250 * kB,
		}, 28},
		// 200 kB would take 100 ms and 390 ms in slow start.
		{"less by a link that begins slowly", starting(1000, 0, 0), starting(1000, 500, 10_000), 100},
		{"half if there is time for that", starting(1000, 0, 0), starting(1000, 1000, 10_000), 450},
	} {
		_, bytes := Steal(0, []Work{test.stealer, test.victim}, []quantity.Bytes{0, test.victim.Left})
		testkit.Holds(t, bytes >= test.want*kB && bytes <= test.want*kB+1, test.name, bytes, test.want)
	}
}

// Whatever the links do, shares add up to the free bytes and all links with a share end
// together. Stealing never takes more than there is, and never delays the end.
func TestRescueProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for range 20_000 {
		works := make([]Work, 1+random.IntN(4))
		largest := make([]quantity.Bytes, len(works))
		known := false
		for i := range works {
			works[i] = Work{
				Usable: random.IntN(5) > 0,
				Rate:   quantity.Rate(8 * math.Exp(8+random.Float64()*10)),
				Left:   max(0, quantity.Bytes(random.Int64N(10_000_000))-5_000_000),
				Delay:  time.Duration(random.Int64N(int64(time.Second))),
				RTT:    time.Duration(random.Int64N(int64(time.Second))),
				Tail:   max(0, quantity.Bytes(random.Int64N(2_000_000))-1_000_000),
			}
			if random.IntN(2) == 0 {
				works[i].Arrived = quantity.Bytes(random.Int64N(1_000_000))
			}
			if random.IntN(5) == 0 {
				works[i].Rate = 0
			}
			if works[i].Left > 0 {
				largest[i] = 1 + quantity.Bytes(random.Int64N(int64(works[i].Left)))
			}
			known = known || works[i].Usable && works[i].Rate > 0
		}
		free := quantity.Bytes(random.Int64N(100_000_000))
		var sum quantity.Bytes
		var end float64
		someone := false
		for x, w := range works {
			share := Share(x, works, free)
			sum += share
			someone = someone || w.Usable && Largest(x, works, free)
			if known && share > 1 {
				if here := w.idle() + float64(share)/w.Rate.BytesPerSecond(); end == 0 {
					end = here
				} else if math.Abs(here-end) > 1e-6*end+1e-3 {
					t.Fatalf("%+v: link %d ends at %v, another at %v", works, x, here, end)
				}
			}
			victim, bytes := Steal(x, works, largest)
			switch {
			case bytes < 0 || bytes > largest[victim]:
				t.Fatalf("%+v: %d bytes stolen of %d", works, bytes, largest[victim])
			case bytes > 0 && w.idle()+float64(bytes)/w.Rate.BytesPerSecond() > works[victim].End():
				t.Fatalf("%+v: stealing %d bytes from %d puts its end off", works, bytes, victim)
			}
		}
		if known && (sum < free || sum > free+quantity.Bytes(len(works))+1) {
			t.Fatalf("%+v: the shares of %d bytes sum up to %d", works, free, sum)
		}
		if known && !someone {
			t.Fatalf("%+v: nobody has the largest share of %d", works, free)
		}
	}
}

func TestSlow(t *testing.T) {
	for _, test := range []struct {
		works []Work
		want  bool
	}{
		{[]Work{work(99, 1, 0), work(110, 1, 0)}, true},
		{[]Work{work(101, 1, 0), work(110, 1, 0)}, false},
		{[]Work{work(890, 1, 0), work(8333, 1, 0)}, true},  // ls: 0.2 · 4612 = 922
		{[]Work{work(930, 1, 0), work(8333, 1, 0)}, false}, // 0.2 · 4632 = 926
		{[]Work{work(1, 1, 0)}, false},
		{[]Work{work(1, 1, 0), {}}, false},
	} {
		testkit.Same(t, Slow(0, test.works), test.want, test.works)
	}
}
