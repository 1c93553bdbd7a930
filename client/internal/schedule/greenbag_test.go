package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// s2 is GreenBag's phone (GreenBag table I).
var s2 = &energy.Model{Radios: map[energy.Kind]*energy.Radio{
	energy.Wifi: {ActiveMW: 360.9, DownMJ: 24.19},
	energy.LTE: {
		ActiveMW: 2022.2, DownMJ: 16.72,
		Tail: []energy.State{{PowerMW: 1350, Time: 11200 * time.Millisecond}},
	},
}}

// scene returns busy Wi-Fi and LTE links with these goodputs.
func scene(wifi, lte quantity.Rate) *Scene {
	s := &Scene{
		Known: Known{Payload: 100_000_000, Links: []Link{
			{Requests: 1, Throughput: wifi, RTT: 20 * time.Millisecond},
			{Requests: 1, Throughput: lte, RTT: 60 * time.Millisecond},
		}},
		Left: 100_000_000, Free: 100_000_000,
		Progress: []Progress{
			{Kind: energy.Wifi, Usable: true, Goodput: wifi, Finished: 1},
			{Kind: energy.LTE, Usable: true, Goodput: lte, Finished: 1},
		},
	}
	return s
}

// GreenBag equations 3 and 4: Z_a = G_a/(G_a+G_b)·(Z+Z_u), Z_b = Z+Z_u−Z_a.
func TestGreenBagSharesSegments(t *testing.T) {
	for _, test := range []struct {
		name       string
		wifi, lte  quantity.Rate
		unfinished quantity.Bytes // of LTE, while Wi-Fi asks
		halves     bool
		want       [2]quantity.Bytes
	}{
		{"in proportion", 3e6, 1e6, 0, false, [2]quantity.Bytes{300_000, 100_000}},
		{"less for a link that is late", 2e6, 2e6, 100_000, false, [2]quantity.Bytes{250_000, 150_000}},
		{"nothing for a link that is later", 2e6, 2e6, 500_000, false, [2]quantity.Bytes{400_000, 0}},
		{"nothing is known", 0, 0, 0, false, [2]quantity.Bytes{200_000, 200_000}},
		{"one is not known: the mean of the others", 4e6, 0, 0, false, [2]quantity.Bytes{200_000, 200_000}},
		{"one to one", 3e6, 1e6, 100_000, true, [2]quantity.Bytes{200_000, 200_000}},
	} {
		s := scene(test.wifi, test.lte)
		s.Progress[1].Unfinished = test.unfinished
		plan := GreenBag{Halves: test.halves}.Plan().(*greenBag)
		var got [2]quantity.Bytes
		plan.Share(0, 400_000, s, got[:])
		testkit.Same(t, got, test.want, test.name)
	}
}

func TestGreenBagSharesAmongUsableLinks(t *testing.T) {
	for what, change := range map[string]func(*Scene){
		"not connected": func(s *Scene) { s.Progress[1].Usable = false },
		"spared":        func(s *Scene) { s.Links[1].Spared = true },
	} {
		s := scene(2e6, 2e6)
		change(s)
		var got [2]quantity.Bytes
		GreenBag{}.Plan().(*greenBag).Share(0, 1000, s, got[:])
		testkit.Same(t, got, [2]quantity.Bytes{1000, 0}, what)
	}
}

// A recovery is due when the playback would stall before the rest arrives. It costs four
// round trips, 240 ms over LTE.
func TestGreenBagRecovers(t *testing.T) {
	const rate = 8e6 // 1 MB/s
	for _, test := range []struct {
		name     string
		buffered quantity.Bytes
		rest     quantity.Bytes
		lte      quantity.Rate
		silence  time.Duration
		want     bool
	}{
		{"in time", 2_000_000, 1_000_000, 4.4e6, 0, false},
		{"too late", 2_000_000, 1_000_000, 3.6e6, 0, true},
		{"not worth it", 0, 100_000, 4e6, 0, false},
		{"silent, and nothing is known of it", 0, 100_000, 0, time.Second, true},
		{"just asked", 0, 100_000, 0, 200 * time.Millisecond, false},
	} {
		s := scene(6e6, test.lte)
		s.InOrder, s.Progress[1].Silence = test.buffered, test.silence
		plan := GreenBag{Player: Player{Rate: rate, Buffer: 4_000_000}}.Plan().(*greenBag)
		plan.Use(s, make([]bool, 2))
		testkit.Same(t, plan.Recover(0, 1, test.rest, s), test.want, test.name)
		plan.alone = 0 // There is no other link to recover with (GreenBag IV.B).
		testkit.Holds(t, !plan.Recover(0, 1, test.rest, s), test.name)
		without := GreenBag{NoRecovery: true}.Plan().(*greenBag)
		without.Use(s, make([]bool, 2))
		testkit.Holds(t, !without.Recover(0, 1, test.rest, s), test.name)
	}
}

// Without a player the order of bytes does not matter before the end.
func TestGreenBagWithoutAPlayerRecoversAtTheEnd(t *testing.T) {
	plan := GreenBag{}.Plan().(*greenBag)
	s := scene(6e6, 1e6)
	plan.Use(s, make([]bool, 2))
	testkit.Holds(t, !plan.Recover(0, 1, 1_000_000, s), "there is other work")
	if s.Free = 0; !plan.Recover(0, 1, 1_000_000, s) {
		t.Error("there is no other work")
	}
}

// Ĝ = 0.3 G + 0.7 Ĝ (GreenBag IV.B). G is the first goodput that is seen after a subsegment has finished.
func TestGreenBagPredicts(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 93))
		plan, s := GreenBag{}.Plan().(*greenBag), scene(0, 0)
		var samples [2][]float64
		var isNew [2]bool
		for x := range s.Progress {
			s.Progress[x].Finished = 0
		}
		for range 1 + random.IntN(30) {
			for x := range s.Progress {
				p := &s.Progress[x]
				p.Goodput = quantity.Rate(random.IntN(3)) * quantity.Rate(1e6*random.Float64())
				if random.IntN(3) == 0 {
					p.Finished, isNew[x] = p.Finished+1, true
				}
				if isNew[x] && p.Goodput > 0 {
					samples[x], isNew[x] = append(samples[x], float64(p.Goodput)), false
				}
			}
			plan.Use(s, make([]bool, 2))
		}
		for x, seen := range samples {
			want := 0.0
			for i, g := range seen {
				weight := math.Pow(0.7, float64(len(seen)-1-i))
				if i > 0 {
					weight *= 0.3
				}
				want += weight * g
			}
			if math.Abs(float64(plan.predicted[x])-want) > 1e-6*want {
				t.Errorf("%g of the goodputs %g, want %g", plan.predicted[x], seen, want)
			}
		}
	}
}

// GreenBag's field scenario: a video of 6.1 Mbit/s over Wi-Fi of 3.85 Mbit/s. Wi-Fi alone is
// enough when the rest of 89.2 MB needs less than 0.8 of its time.
func TestGreenBagGoesOnWithWifiAlone(t *testing.T) {
	const rate = 6.1e6
	for _, test := range []struct {
		name         string
		buffer, left quantity.Bytes
		wifi, lte    quantity.Rate
		want         [2]bool
	}{
		{"too much is left", 20_000_000, 30_000_000, 3.85e6, 5.16e6, [2]bool{true, true}},
		{"enough is there", 20_000_000, 18_000_000, 3.85e6, 5.16e6, [2]bool{true, false}},
		{"the playback has not begun", 3_000_000, 1_000_000, 3.85e6, 5.16e6, [2]bool{true, true}},
		{"LTE alone costs less than both", 20_000_000, 60_000_000, 0.01e6, 20e6, [2]bool{false, true}},
	} {
		plan := GreenBag{SegmentSize: 1, Player: Player{Rate: rate, Buffer: 4_000_000}, Model: s2}.Plan().(*greenBag)
		s := scene(test.wifi, test.lte)
		s.Left, s.InOrder = test.left, test.buffer
		var use [2]bool
		plan.Use(s, use[:])
		testkit.Same(t, use, [2]bool{true, true}, test.name)
		plan.Segment(0, s)
		if plan.Use(s, use[:]); use != test.want {
			t.Errorf("%s: %v, want %v", test.name, use, test.want)
		}
	}
}

// One link stays alone until it needs all of the playback's time, or 0.8 of that time for
// the present segment.
func TestGreenBagFallsBack(t *testing.T) {
	for name, change := range map[string]func(*Scene){
		"the rest would be late":    func(s *Scene) { s.Left = 40_000_000 },
		"the segment would be late": func(s *Scene) { s.Progress[0].Goodput, s.Progress[0].Unfinished = 0.1e6, 500_000 },
	} {
		plan := GreenBag{SegmentSize: 1, Player: Player{Rate: 6.1e6, Buffer: 4_000_000}, Model: s2}.Plan().(*greenBag)
		s := scene(3.85e6, 5.16e6)
		s.Left, s.InOrder = 18_000_000, 20_000_000
		var use [2]bool
		plan.Segment(0, s)
		plan.Use(s, use[:])
		if use != [2]bool{true, false} {
			t.Fatalf("%v is used", use)
		}
		s.Now, s.Left = 100*time.Millisecond, 30_000_000 // more than it is chosen for
		plan.Segment(0, s)
		if plan.Use(s, use[:]); use != [2]bool{true, false} {
			t.Errorf("%v is used though nothing has changed", use)
		}
		change(s)
		if plan.Use(s, use[:]); use != [2]bool{true, true} {
			t.Errorf("%s, and %v is used", name, use)
		}
	}
}

// GreenBag figure 6: buffering until B, playing until nothing is left.
func TestThePlayer(t *testing.T) {
	p := playback{Player: Player{Rate: 8e6, Buffer: 4_000_000}}
	for _, step := range []struct {
		at       time.Duration
		arrived  quantity.Bytes
		all      bool
		playing  bool
		buffered float64
	}{
		{0, 0, false, false, 0},
		{time.Second, 3_900_000, false, false, 3_900_000},
		{2 * time.Second, 4_000_000, false, true, 4_000_000},
		{4 * time.Second, 5_000_000, false, true, 3_000_000},
		{8 * time.Second, 5_500_000, false, false, 0},
		{9 * time.Second, 9_400_000, false, false, 3_900_000},
		{10 * time.Second, 9_500_000, true, true, 4_000_000},
	} {
		p.observe(step.at, step.arrived, step.all)
		testkit.Holds(t, p.playing == step.playing && p.buffered() == step.buffered, step.at, p.playing, p.buffered(), step.playing, step.buffered)
	}
}
