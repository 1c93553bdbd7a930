package schedule

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// s3 is eMPTCP's phone, as in profiles/energy. With LTE of 8 Mbit/s both links together cost
// least for Wi-Fi of 1.2 to 4.3 Mbit/s; with LTE of 5 Mbit/s up to 2.67 Mbit/s.
var s3 = &energy.Model{SharedMW: 322, Radios: map[energy.Kind]*energy.Radio{
	energy.Wifi: {ActiveMW: 193.2, DownMJ: 51.97},
	energy.LTE:  {ActiveMW: 966, DownMJ: 51.97},
}}

// over runs a plan over links with these rates and returns each change of the used links.
type use struct {
	at   time.Duration
	both bool
}

func over(plan Plan, s *Scene, took time.Duration, wifi, lte quantity.Rate) (uses []use) {
	used := []bool{!s.Links[0].Spared, !s.Links[1].Spared}
	for end := s.Now + took; s.Now < end; s.Now += plan.Every() {
		plan.Use(s, used)
		if last := len(uses) - 1; last < 0 || uses[last].both != used[1] {
			uses = append(uses, use{s.Now, used[1]})
		}
		for x, rate := range []quantity.Rate{wifi, lte} {
			p := &s.Progress[x]
			s.Links[x].Spared, p.Unfinished = !used[x], 0
			if used[x] {
				p.Age, p.Unfinished = p.Age+plan.Every(), 100_000
				p.Received += quantity.Bytes(rate.Over(plan.Every()))
			}
		}
	}
	return uses
}

func TestEMPTCPWakesLTEWhenThatPays(t *testing.T) {
	for _, test := range []struct {
		name      string
		wifi, lte quantity.Rate
		at        time.Duration // when LTE is opened; -1: never
	}{
		{"Wi-Fi alone costs less", 12e6, 8e6, -1},
		{"after 1 MB", 2.3e6, 8e6, 3 * time.Second},
		{"after 3 s", 0.9e6, 8e6, 3 * time.Second},
	} {
		s := scene(0, 0)
		s.Links[1].RTT = 0 // it was never connected
		uses := over(EMPTCP{Model: s3}.Plan(), s, 20*time.Second, test.wifi, test.lte)
		switch {
		case uses[0].both:
			t.Errorf("%s: LTE is used at once", test.name)
		case test.at < 0 && len(uses) > 1:
			t.Errorf("%s: LTE is used at %v", test.name, uses[1].at)
		case test.at >= 0 && (len(uses) < 2 || (uses[1].at-test.at).Abs() > 100*time.Millisecond):
			t.Errorf("%s: uses are %v", test.name, uses)
		}
	}
}

// At 2.5 Mbit/s, 1 MB arrives in 3.2 s; at 2.69 Mbit/s in 2.97 s.
func TestEMPTCPWaitsForAMegabyte(t *testing.T) {
	s := scene(0, 0)
	plan := EMPTCP{Model: s3}.Plan()
	over(plan, s, 500*time.Millisecond, 10e6, 0) // 625 kB at once, then slower
	uses := over(plan, s, 3*time.Second, 2e6, 8e6)
	testkit.Holds(t, len(uses) == 2 && (uses[1].at-2*time.Second).Abs() <= 100*time.Millisecond, uses)
}

// At a round trip of 0.6 s the rate of Wi-Fi is known after 6.6 s, and τ of equation 1 is 7.6 s:
// 0.6 s · (log2((75 kB + 14.48 kB)/14.48 kB) + 10). At 20 ms τ is 3 s, as published.
func TestEMPTCPWaitsForTheTimeOfEquation1(t *testing.T) {
	for rtt, want := range map[time.Duration]time.Duration{
		600 * time.Millisecond: 7600 * time.Millisecond,
		20 * time.Millisecond:  3 * time.Second,
	} {
		s := scene(0, 0)
		s.Links[0].RTT, s.Links[1].RTT = rtt, 0
		uses := over(EMPTCP{Model: s3}.Plan(), s, 20*time.Second, 1e6, 8e6)
		testkit.Holds(t, len(uses) == 2 && (uses[1].at-want).Abs() <= 100*time.Millisecond, rtt, uses, want)
	}
}

func TestEMPTCPDoesNotWakeLTEForAnIdleConnection(t *testing.T) {
	for name, change := range map[string]func(*Progress){
		"nothing is asked for":              func(p *Progress) { p.Unfinished = 0 },
		"nothing has come for a round trip": func(p *Progress) { p.Silence = 21 * time.Millisecond },
		"":                                  func(*Progress) {},
	} {
		s := scene(0, 0)
		plan := EMPTCP{Model: s3}.Plan()
		over(plan, s, 2*time.Second, 1e6, 0)
		s.Now, s.Progress[0].Age = 10*time.Second, 10*time.Second
		change(&s.Progress[0])
		used := make([]bool, 2)
		if plan.Use(s, used); used[1] != (name == "") {
			t.Errorf("%q, and LTE is used: %v", name, used[1])
		}
	}
}

// The threshold is 4.3 Mbit/s of Wi-Fi with LTE of 8 Mbit/s, and the choice changes 10 %
// beyond it. Steps are small, because the predictor overshoots.
func TestEMPTCPChangesItsChoice(t *testing.T) {
	s := scene(0, 0)
	plan := EMPTCP{Model: s3}.Plan()
	for _, test := range []struct {
		wifi quantity.Rate
		both bool
	}{{1e6, true}, {3e6, true}, {4e6, true}, {4.5e6, true}, {4.9e6, false}, {4.3e6, false}, {4e6, false}, {3.7e6, true}, {0.1e6, true}} {
		uses := over(plan, s, 10*time.Second, test.wifi, 8e6)
		if last := uses[len(uses)-1]; last.both != test.both {
			t.Errorf("with %g Mbit/s of Wi-Fi both are used: %v", test.wifi/1e6, last.both)
		}
	}
}

// Between two requests a link may deliver little for some round trips. With a sample each
// round trip, LTE would count as slow, be left, and never be sampled again.
func TestEMPTCPSamplesOncePerHandshake(t *testing.T) {
	s := scene(0, 0)
	plan := EMPTCP{Model: s3}.Plan()
	over(plan, s, 10*time.Second, 0.8e6, 8e6)
	s.Links[1].Handshake = 320 * time.Millisecond // now that it is connected
	over(plan, s, 10*time.Second, 0.8e6, 8e6)
	over(plan, s, 200*time.Millisecond, 0.8e6, 1.5e6)
	if uses := over(plan, s, 10*time.Second, 0.8e6, 8e6); len(uses) != 1 || !uses[0].both {
		t.Errorf("after 200 ms of little LTE uses are %v", uses)
	}
}

// Seven packets arrive between two checks, and then none.
func TestEMPTCPSamplesTenPackets(t *testing.T) {
	s := scene(0, 0)
	plan := EMPTCP{Model: s3}.Plan().(*emptcp)
	over(plan, s, 10*time.Second, 0.8e6, 0)
	for range 10 {
		over(plan, s, 50*time.Millisecond, 1.6e6, 0)
		over(plan, s, 50*time.Millisecond, 0, 0)
		if rate := plan.links[0].next(); math.Abs(float64(rate)-0.8e6) > 0.3e6 {
			t.Errorf("of 0.8 Mbit/s in bursts it expects %g", rate)
		}
	}
}

// In the setting of eMPTCP 4.1 equation 1 gives 2.67 s.
func TestSampleTime(t *testing.T) {
	// 10 Mbit/s and 200 ms: 200 ms · (log2((250 kB + 14.48 kB)/14.48 kB) + 10).
	if got := sampleTime(10e6, 200*time.Millisecond).Seconds(); math.Abs(got-2.838) > 0.001 {
		t.Errorf("%g s", got)
	}
	testkit.Same(t, sampleTime(0, 20*time.Millisecond), 200*time.Millisecond)
}

// The links in use get requests as if there were no others.
func TestEMPTCPSizes(t *testing.T) {
	e := EMPTCP{Sizes: Alg1{UpperLimit: 1_000_000, FirstRequests: 400_000}}
	known := Known{Payload: 1e9, Links: []Link{{Requests: 1, Throughput: 3e6}, {Requests: 1, Throughput: 1e6}}}
	if a, b := e.Next(0, known), e.Next(1, known); a != 750_000 || b != 250_000 {
		t.Errorf("%d and %d bytes", a, b)
	}
	known.Links[1].Spared = true
	testkit.Same(t, e.Next(0, known), 1_000_000)
	known.Links[0].Requests = 0
	testkit.Same(t, e.Next(0, known), 400_000)
}

// The same samples as in emulator/linklab/energy/path_usage_test.py.
func TestHoltWintersByHand(t *testing.T) {
	var h holtWinters
	for _, test := range []struct {
		sample quantity.Rate
		want   float64
	}{
		{10, 10},
		{20, 19.6},     // level 0.8·20 + 0.2·10 = 18, trend 0.2·8 + 0.8·0 = 1.6
		{20, 21.584},   // level 0.8·20 + 0.2·19.6 = 19.92, trend 0.2·1.92 + 0.8·1.6 = 1.664
		{10, 12.12736}, // level 0.8·10 + 0.2·21.584 = 12.3168, trend 0.2·-7.6032 + 0.8·1.664 = -0.18944
	} {
		h.add(test.sample)
		if got := float64(h.next()); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("after a sample of %g it expects %g, want %g", test.sample, got, test.want)
		}
	}
	for range 9 {
		h.add(0)
	}
	testkit.Same(t, h.next(), 0)
}

// A link that was left keeps its samples: new ones are added to them (eMPTCP 3.2).
func TestEMPTCPUsesOldSamplesWithNewOnes(t *testing.T) {
	s := scene(0, 0)
	plan := EMPTCP{Model: s3}.Plan().(*emptcp)
	for range 2 { // LTE opens, settles at 8 Mbit/s, and Wi-Fi becomes good.
		over(plan, s, 10*time.Second, 1e6, 8e6)
		over(plan, s, 10*time.Second, 10e6, 8e6)
	}
	if !s.Links[1].Spared {
		t.Fatal("LTE is still used")
	}
	before := plan.links[1].holtWinters
	if math.Abs(float64(before.next())-8e6) > 0.1e6 {
		t.Fatalf("of an LTE of 8 Mbit/s it expects %g", before.next())
	}
	// Wi-Fi is bad again. LTE now has 2 Mbit/s, and is judged after ten round trips.
	for plan.links[1].holtWinters == before {
		over(plan, s, plan.Every(), 0.1e6, 2e6)
	}
	before.add(2e6)
	if got := plan.links[1].next(); math.Abs(float64(got-before.next())) > 1 {
		t.Errorf("it expects %g, want %g of old samples and a new one", got, before.next())
	}
}

func TestBoosterIsForLargeFiles(t *testing.T) {
	used := make([]bool, 2)
	for size, want := range map[quantity.Bytes][]bool{0: {true, false}, 30_000_000: {true, false}, 30_000_001: {true, true}} {
		s := scene(1e6, 1e6)
		s.Payload = size
		if (Booster{}).Plan().Use(s, used); !slices.Equal(used, want) {
			t.Errorf("of %d bytes %v are used", size, used)
		}
	}
	s := scene(1e6, 1e6)
	s.Payload, s.Progress[0].Kind, s.Progress[1].Kind = 0, "", ""
	if (Booster{}).Use(s, used); !slices.Equal(used, []bool{true, false}) {
		t.Errorf("of links of no kind %v are used", used)
	}
}

func TestDynSub(t *testing.T) {
	d := DynSub{Player: Player{Rate: 4e6}}
	s := scene(3e6, 1e6)
	testkit.Same(t, d.Segment(0, s), 1_000_000)
	var shares [2]quantity.Bytes
	if d.Share(0, 1_000_000, s, shares[:]); shares != [2]quantity.Bytes{750_000, 250_000} {
		t.Errorf("shares are %v", shares)
	}
	s.Links[1].Throughput = 0
	if d.Share(1, 1_000_000, s, shares[:]); shares != [2]quantity.Bytes{500_000, 500_000} {
		t.Errorf("shares are %v", shares)
	}
	s.Progress[1].Usable = false
	if d.Share(0, 1_000_000, s, shares[:]); shares != [2]quantity.Bytes{1_000_000, 0} {
		t.Errorf("shares are %v", shares)
	}
}

// Thesis 4.3.3: without a limit a link of 2 % gets 2 % of U.
func TestTheOptionalLimits(t *testing.T) {
	known := Known{Payload: 250_000_000, Links: []Link{
		{Requests: 1, Throughput: 98e6, Bandwidth: 100e6}, {Requests: 1, Throughput: 2e6, Bandwidth: 100e6},
	}}
	limited := Alg1Limited{Alg1{UpperLimit: 1_000_000, FirstRequests: 200_000}}
	if a, b := limited.Next(0, known), limited.Next(1, known); a != 900_000 || b != 100_000 {
		t.Errorf("alg1-limited requests %d and %d bytes", a, b)
	}
	// D is 125 MB · 100/200 = 62.5 MB, and limited to 12.5 MB.
	testkit.Same(t, (Alg2Limited{}).Next(0, known), 12_250_000, (Alg2{}).Next(0, known))
	// Thesis 4.3.4, example 1, is far below the limit.
	known = Known{Payload: 250_000_000, Links: []Link{
		{Requests: 1, Throughput: 1600 * 8e3, Bandwidth: 30_000 * 8e3}, {Requests: 1, Throughput: 800 * 8e3, Bandwidth: 30_000 * 8e3},
	}}
	if a, b := (Alg2Limited{}).Next(0, known), (Alg2{}).Next(0, known); a != b || a != 3_333_333 {
		t.Errorf("alg2-limited requests %d bytes, alg2 %d", a, b)
	}
	known.Links[0].Requests = 0
	testkit.Same(t, limited.Next(0, known), 100_000)
}

// Thesis 4.3.5: with a BDP of 2000 kB, a size of 9000 kB in Alg2 and f = 0.3 the request is
// 4100 kB. With a history that varies by half it is 3050 kB.
func TestThePaddingFollowsHistory(t *testing.T) {
	link := Link{Requests: 1, Throughput: 80e6, Bandwidth: 80e6, RTT: 200 * time.Millisecond}
	known := Known{Payload: 18_000_000, Links: []Link{link, link}}
	a := Alg3History{Alg3{Padding: 0.3}}
	for variation, want := range map[float64]quantity.Bytes{0: 2_750_000, 0.5: 2_375_000, 1: 2_000_000, 3: 2_000_000} {
		known.Links[0].Variation = variation
		testkit.Same(t, a.Next(0, known), want, variation)
	}
}

// Thesis 8.2.4, and its result in scenario ls, where Wi-Fi of 7.19 Mbit/s is below 0.2 of
// the mean.
func TestSlowLinksAreForsaken(t *testing.T) {
	for _, test := range []struct {
		name      string
		dynamic   bool
		wifi, lte quantity.Rate
		age       time.Duration
		spared    bool
		want      bool
	}{
		{"static", false, 0.79e6, 60e6, time.Second, false, true},
		{"static, just fast enough", false, 0.81e6, 60e6, time.Second, false, false},
		{"static, nothing is known yet", false, 0, 60e6, 900 * time.Millisecond, false, false},
		{"the last one", false, 0, 60e6, time.Second, true, false},
		{"dynamic, ls", true, 7.19e6, 66e6, time.Second, false, true},
		{"dynamic, just fast enough", true, 7.4e6, 66e6, time.Second, false, false},
		{"dynamic, both are slow", true, 0.5e6, 0.5e6, time.Second, false, false},
	} {
		s := scene(test.wifi, test.lte)
		s.Progress[0].Age, s.Links[1].Spared = test.age, test.spared
		plan := SlowLinks{Scheduler: Naive{}, Dynamic: test.dynamic}.Plan().(Forsaker)
		testkit.Same(t, plan.Forsake(0, s), test.want, test.name)
	}
}
