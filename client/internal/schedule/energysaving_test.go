package schedule

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// phone is a model as galaxy-s3: waking LTE and keeping it awake costs much.
var phone = &energy.Model{SharedMW: 322, Radios: map[energy.Kind]*energy.Radio{
	energy.Wifi: {ActiveMW: 193.2, DownMJ: 51.97},
	energy.LTE: {
		ActiveMW: 966, DownMJ: 51.97,
		Promotion: energy.State{PowerMW: 1210.7, Time: 260 * time.Millisecond},
		Tail:      []energy.State{{PowerMW: 1060, Time: 11580 * time.Millisecond}},
	},
}}

// decided returns whether Wi-Fi and LTE are used after a second of a download over Wi-Fi, or
// over both links, at these rates. Rate 0 means that a link was never used.
func decided(slowdown float64, wifi, lte quantity.Rate, left quantity.Bytes) [2]bool {
	plan := EnergySaving{Model: phone, Slowdown: slowdown}.Plan()
	var use [2]bool
	s := &Scene{
		Known: Known{Payload: left, Links: make([]Link, 2)},
		Left:  left, Free: left,
		Progress: []Progress{{Kind: energy.Wifi}, {Kind: energy.LTE}},
	}
	for x, rate := range []quantity.Rate{wifi, lte} {
		s.Links[x] = Link{Pace: rate, Arrived: 1e9, RTT: 20 * time.Millisecond, Spared: rate == 0}
		p := &s.Progress[x]
		p.Usable, p.Silence = rate > 0, time.Hour
		if rate > 0 {
			p.Age, p.Silence, p.Unfinished = time.Second, 0, 1
		}
	}
	for now := 100 * time.Millisecond; now <= time.Second; now += 100 * time.Millisecond {
		s.Now = now
		plan.Use(s, use[:])
	}
	return use
}

func TestEnergySavingUsesTheCheapestSetInTime(t *testing.T) {
	for name, test := range map[string]struct {
		slowdown  float64
		wifi, lte quantity.Rate
		left      quantity.Bytes
		want      [2]bool
	}{
		"Wi-Fi brings it in twice the time":            {1, 10e6, 8e6, 20e6, [2]bool{true, false}},
		"it does not in the same time":                 {0, 10e6, 8e6, 20e6, [2]bool{true, true}},
		"it is too slow":                               {1, 2e6, 20e6, 20e6, [2]bool{false, true}},
		"any time, and Wi-Fi that costs more per byte": {100, 1e5, 20e6, 200e6, [2]bool{false, true}},
		"LTE was never used, and Wi-Fi does":           {1, 10e6, 0, 20e6, [2]bool{true, false}},
		"to find out costs next to nothing":            {1, 10e6, 0, 2e9, [2]bool{true, true}},
		"it would be over before LTE were awake":       {1, 1.2e6, 0, 200e3, [2]bool{true, false}},
	} {
		testkit.Same(t, decided(test.slowdown, test.wifi, test.lte, test.left), test.want, name)
	}
}

func TestEnergySavingWaitsForWifi(t *testing.T) {
	plan := EnergySaving{Model: phone, Slowdown: 1}.Plan()
	use := []bool{false, true}
	s := &Scene{Known: Known{Payload: 1e9, Links: make([]Link, 2)}, Left: 1e9, Progress: []Progress{{Kind: energy.Wifi}, {Kind: energy.LTE}}}
	// In slow start the rate is not recorded.
	s.Links[0] = Link{Pace: 1e6, Arrived: 10_000, RTT: 20 * time.Millisecond}
	s.Progress[0] = Progress{Kind: energy.Wifi, Usable: true, Age: 100 * time.Millisecond, Unfinished: 1}
	s.Now = 100 * time.Millisecond
	if plan.Use(s, use); !use[0] || use[1] {
		t.Errorf("uses %v in Wi-Fi's slow start, want Wi-Fi alone", use)
	}
	// The plan does not wait for an almost stalled Wi-Fi.
	s.Now, s.Progress[0].Age, s.Links[0].Pace = 4*time.Second, 4*time.Second, 1e4
	plan.Use(s, use)
	testkit.Holds(t, use[1], use)
}

// With a player all links are used until the playback begins, and then those that deliver
// the rest in time.
func TestEnergySavingKeepsAPlayerPlaying(t *testing.T) {
	plan := EnergySaving{Model: phone, Player: Player{Rate: 8e6, Buffer: 1e6}}.Plan()
	use := []bool{false, false}
	s := &Scene{Known: Known{Payload: 101e6, Links: make([]Link, 2)}, Left: 101e6, Progress: make([]Progress, 2)}
	for x, kind := range []energy.Kind{energy.Wifi, energy.LTE} {
		s.Links[x] = Link{Pace: 9e6, Arrived: 1e9, RTT: 20 * time.Millisecond}
		s.Progress[x] = Progress{Kind: kind, Usable: true, Age: time.Second, Unfinished: 1}
	}
	look := func(now time.Duration, inOrder quantity.Bytes, wifi quantity.Rate) {
		s.Now, s.InOrder, s.Left, s.Links[0].Pace = now, inOrder, 101e6-inOrder, wifi
		plan.Use(s, use)
	}
	if look(time.Second, 500_000, 9e6); !use[0] || !use[1] {
		t.Errorf("uses %v before it plays, want both", use)
	}
	look(2*time.Second, 5e6, 9e6)
	if look(3*time.Second, 6e6, 9e6); !use[0] || use[1] {
		t.Errorf("uses %v beside a Wi-Fi that is faster than the player, want Wi-Fi alone", use)
	}
	for now := 4 * time.Second; now < 14*time.Second; now += time.Second {
		look(now, 6e6+500_000*quantity.Bytes(now/time.Second-3), 4e6)
	}
	testkit.Holds(t, use[1], use)
}

// A player can wait while it plays its buffer. Before it starts, or during a stall, it waits
// until the links in use have filled the buffer.
func TestEnergySavingWaits(t *testing.T) {
	const rate = 4e6 // 500 kB/s
	for name, test := range map[string]struct {
		player  Player
		inOrder quantity.Bytes
		wifi    quantity.Rate
		want    float64
	}{
		"plays 2 MB":            {Player{rate, 1e6}, 2e6, 8e6, 4},
		"waits for 1 of 2 MB":   {Player{rate, 2e6}, 1e6, 8e6, 1},
		"waits for a slow link": {Player{rate, 2e6}, 1e6, 1e6, 8},
		"plays nothing":         {Player{}, 1e6, 8e6, 0},
	} {
		plan := EnergySaving{Model: phone, Player: test.player}.Plan()
		s := &Scene{
			Known: Known{Payload: 1e9, Links: []Link{{Pace: test.wifi, Arrived: 1e9, RTT: 20 * time.Millisecond}}},
			Left:  1e9 - test.inOrder, Free: 1e9 - test.inOrder, InOrder: test.inOrder, Now: savingPeriod,
			Progress: []Progress{{Kind: energy.Wifi, Usable: test.wifi > 0, Age: time.Minute, Unfinished: 1}},
		}
		plan.Use(s, make([]bool, 1))
		if got := plan.(Waiter).Waits(s); got < test.want-0.01 || got > test.want+0.01 {
			t.Errorf("a player that %s can wait for %.2f s, want %.2f", name, got, test.want)
		}
		if s.Payload = 0; plan.(Waiter).Waits(s) != 0 {
			t.Errorf("a player that %s waits, while the size is unknown", name)
		}
	}
}

// Wi-Fi alone is late for now, but the player has enough in its buffer, and LTE alone would be
// late, too. So waking LTE is put off: Wi-Fi may become better before.
func TestEnergySavingPutsOffToWakeALink(t *testing.T) {
	plan := EnergySaving{Model: phone, Player: Player{Rate: 7e6, Buffer: 1e6}}.Plan()
	use := []bool{false, false}
	s := &Scene{Known: Known{Payload: 101e6, Links: make([]Link, 2)}, Progress: make([]Progress, 2)}
	now, inOrder := time.Duration(0), quantity.Bytes(0)
	look := func(wifi, comes quantity.Rate) {
		now += time.Second
		inOrder += quantity.Bytes(comes.Over(time.Second))
		s.Now, s.InOrder, s.Left = now, inOrder, 101e6-inOrder
		for x, kind := range []energy.Kind{energy.Wifi, energy.LTE} {
			s.Links[x] = Link{Pace: []quantity.Rate{wifi, 6.6e6}[x], Arrived: 1e9, RTT: 20 * time.Millisecond, Spared: !use[x]}
			s.Progress[x] = Progress{Kind: kind, Usable: true, Age: time.Minute, Unfinished: 1, Silence: time.Hour}
			if use[x] {
				s.Progress[x].Silence = 0
			}
		}
		plan.Use(s, use)
	}
	useAll(use)
	for range 3 {
		look(12e6, 18.6e6)
	}
	for range 12 {
		look(12e6, 12e6)
	}
	if !use[0] || use[1] {
		t.Fatalf("uses %v beside a Wi-Fi that is faster than the player", use)
	}
	alone := 0
	for !use[1] && alone < 60 {
		look(0.5e6, 0.5e6)
		alone++
	}
	if buffered := plan.(*energySaving).player.lasts(0); alone < 5 || use[1] && buffered < 2 {
		t.Errorf("LTE is used %d s after Wi-Fi has become too slow, with %.1f s to play", alone, buffered)
	}
}

// phoneScene steps through a download over Wi-Fi and LTE of 8 Mbit/s, a second at a time.
type phoneScene struct {
	plan Plan
	Scene
	use []bool
}

func newPhoneScene(plan EnergySaving, payload quantity.Bytes) *phoneScene {
	return &phoneScene{plan: plan.Plan(), use: []bool{true, false}, Scene: Scene{
		Known:    Known{Payload: payload, Links: make([]Link, 2)},
		Left:     payload,
		Progress: []Progress{{Kind: energy.Wifi, Silence: time.Hour}, {Kind: energy.LTE, Silence: time.Hour}},
	}}
}

// pass runs so many seconds with Wi-Fi at a rate, and returns in how many of them each link
// was used.
func (s *phoneScene) pass(seconds int, wifi quantity.Rate) (used [2]int) {
	for range seconds * 10 {
		s.Now += 100 * time.Millisecond
		for x, rate := range []quantity.Rate{wifi, 8e6} {
			p := &s.Progress[x]
			s.Links[x] = Link{Pace: rate, Arrived: 1e9, RTT: 20 * time.Millisecond, Spared: !s.use[x]}
			p.Usable, p.Silence = s.use[x], p.Silence+100*time.Millisecond
			if s.use[x] {
				p.Age, p.Silence, p.Unfinished = s.Now, 0, 1
				s.Left -= quantity.Bytes(rate.Over(100 * time.Millisecond))
				used[x]++
			}
		}
		s.plan.Use(&s.Scene, s.use)
	}
	return [2]int{used[0] / 10, used[1] / 10}
}

// An unused link is probed again, less often the longer it is unused. It is used again when
// it is better.
func TestEnergySavingProbesUnusedLinks(t *testing.T) {
	s := newPhoneScene(EnergySaving{Model: phone, Slowdown: 1}, 256e6)
	s.pass(5, 0.5e6)
	early := s.pass(30, 0.5e6)
	s.pass(30, 0.5e6)
	late := s.pass(30, 0.5e6)
	testkit.Holds(t, early[0] != 0 && late[0] != 0 && late[0] < early[0] && late[1] == 30, early[0], late[0])
	if s.pass(25, 10e6); !s.use[0] || s.use[1] {
		t.Errorf("uses %v 25 s after Wi-Fi has become better than LTE", s.use)
	}
}

// A rate that lasted for long is expected to last.
func TestEnergySavingWakesNoLinkForAMoment(t *testing.T) {
	s := newPhoneScene(EnergySaving{Model: phone, Slowdown: 1}, 256e6)
	s.pass(40, 10e6)
	if used := s.pass(15, 0.5e6); used[1] > 0 {
		t.Errorf("LTE is used for %d of 15 s in which Wi-Fi is slow, with time for more", used[1])
	}
	// It is not expected forever.
	if s.pass(150, 0.5e6); !s.use[1] {
		t.Error("LTE is not used although Wi-Fi has been slow for long")
	}
}

// The cost of a probe includes all of its time.
func TestEnergySavingCountsTheCostOfAProbe(t *testing.T) {
	s := newPhoneScene(EnergySaving{Model: phone, Slowdown: 1}, 256e6)
	if used := s.pass(30, 8e6); used[1] > 0 {
		t.Errorf("LTE is used for %d s to see what it carries, which costs more than a twentieth of the rest", used[1])
	}
	s = newPhoneScene(EnergySaving{Model: phone, Slowdown: 1}, 2e9)
	if used := s.pass(30, 8e6); used[1] < 1 || used[1] > 3 {
		t.Errorf("LTE is used for %d s to see what it carries, where that costs next to nothing", used[1])
	}
}

// With one connection a link requests enough not to wait, but little for a reader in order.
func TestEnergySavingRequestsASecondOfWork(t *testing.T) {
	for _, test := range []struct {
		link   Link
		played bool
		want   quantity.Bytes
	}{
		{Link{Pace: 8e6, Arrived: 10e6, RTT: 20 * time.Millisecond}, false, 1_000_000},
		{Link{Pace: 16e6, Arrived: 10e6, RTT: 20 * time.Millisecond}, false, 2_000_000},
		{Link{Pace: 16e6, Arrived: 10e6, RTT: 20 * time.Millisecond}, true, 500_000},
		{Link{Pace: 80e6, Arrived: 1e6, RTT: 20 * time.Millisecond}, false, MostOrder(1e6)},
		{Link{Pace: 80e6, Arrived: 1e5, RTT: 100 * time.Millisecond}, false, Defaults.FirstRequests},
	} {
		plan := EnergySaving{Model: phone}
		if test.played {
			plan.Player = Player{Rate: 5e6, Buffer: 1e6}
		}
		if got := plan.Next(0, Known{InOrder: test.played, Links: []Link{test.link}}); got != test.want {
			t.Errorf("%+v, played %v: %d bytes, want %d", test.link, test.played, int64(got), int64(test.want))
		}
	}
}
