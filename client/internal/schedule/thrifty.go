package schedule

import (
	"math"
	"math/bits"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// Thrifty is Adaptive with another objective: the least energy for which a
// download takes no longer than a stated part more than it would over all links.
// With each look it takes, of all sets of links that bring the rest in the time
// that is left, the one that brings it for the least. What was used and is not
// any more, because others can do the rest in time, shows in its tail alone.
type Thrifty struct {
	Adaptive
	// Model is what links draw.
	Model *energy.Model
	// Slowdown is how much longer than over all links a download may take, as a
	// part of that: 0 is not at all.
	Slowdown float64
	// Player, if anybody plays the payload, is who must not run dry: then that
	// is the time for the rest, and all links are used until the playback begins.
	Player Player
}

const (
	// thriftyPeriod is how often the links are looked at.
	thriftyPeriod = 100 * time.Millisecond
	// thriftySmoothing is the time over which a link's rate is averaged: links
	// waver, and to wake a radio costs as much as to use it for seconds.
	thriftySmoothing = 2 * time.Second
	// thriftyMargin is the part of the time left that the rest may take when
	// links are left; they are taken again when it would take all of it.
	thriftyMargin = 0.9
	// probePart is the part of what the rest costs that it may cost to find out
	// what a link carries which was never used.
	probePart = 0.05
	// beginTrips is how many round trips a rate says too little: slow start takes
	// eight to 256 initial windows, 3.7 MB.
	beginTrips = 8
	// startOrder is what a link is asked for in slow start, in bytes, as first
	// requests are (thesis 4.3.3).
	startOrder = 1_000_000
	// connectTime is how long a link that was not used may take to be connected.
	connectTime = 2 * time.Second
	// leastAlone is for how long the links in use must do, so that all bring the
	// rest later: as long as it takes to wake them.
	leastAlone = connectTime
	// mostSets bounds the number of links of which all sets are looked at.
	mostSets = 6
)

// UsualSlowdown allows twice the time: one of two links of one speed does.
const UsualSlowdown = 1.0

// Next is as with Adaptive, but for slow start: with one connection it must not
// wait for the next order, unless somebody waits for the bytes in order.
func (t Thrifty) Next(x int, known Known) quantity.Bytes {
	size := t.Adaptive.Next(x, known)
	if l := known.Links[x]; t.Player.Rate == 0 && IsStarting(l.Arrived, l.Pace, l.RTT) {
		size = max(size, startOrder)
	}
	return size
}

// Plan makes it a Planner.
func (t Thrifty) Plan() Plan { return &thrifty{Thrifty: t, player: playback{Player: t.Player}} }

type thrifty struct {
	Thrifty
	player playback
	// rates are what links carry, as far as they were seen at it; at is when
	// they were looked at.
	rates []quantity.Rate
	seen  []bool
	at    time.Duration
	// spared is when a link was last not used: a while later it is connected.
	spared []time.Duration
	// could is what all links could have brought by now.
	could quantity.Bytes
	// all is when all links would have been done, once could says so.
	all time.Duration
	// set is what is used, a bit for each link; 0 before the first decision.
	set   uint
	loads []energy.Load
}

func (*thrifty) Every() time.Duration { return thriftyPeriod }

// Use is the set for the rest. Until something is known of Wi-Fi it is used
// alone: another radio that was woken for nothing costs most of all.
func (t *thrifty) Use(s *Scene, use []bool) {
	if t.rates == nil {
		t.rates, t.seen = make([]quantity.Rate, len(use)), make([]bool, len(use))
		t.spared = make([]time.Duration, len(use))
	}
	t.observe(s)
	if t.Player.Rate > 0 && s.Payload > 0 {
		t.player.observe(s.Now, s.InOrder-s.Start, s.Left == 0)
		if !t.player.playing {
			useAll(use)
			return
		}
	}
	if s.Payload == 0 || !t.isKnown(^uint(0)) {
		useKind(energy.Wifi, s, use)
		return
	}
	t.set = t.choose(s)
	for x := range use {
		use[x] = t.set>>x&1 == 1
	}
}

// observe learns what links carry that are at work, and what all could have
// brought.
func (t *thrifty) observe(s *Scene) {
	passed := s.Now - t.at
	if passed <= 0 && t.at > 0 {
		return
	}
	t.at = s.Now
	weight := 1 - math.Exp(-passed.Seconds()/thriftySmoothing.Seconds())
	for x, p := range s.Progress {
		l := s.Links[x]
		if l.Spared {
			t.spared[x] = s.Now
		}
		begins := p.Age < delayTime && float64(l.Arrived) < (beginTrips*l.Pace).Over(l.RTT)
		switch {
		case l.Spared || p.Unfinished == 0 || l.Pace == 0 && !t.seen[x] || begins:
		case !t.seen[x]:
			t.rates[x], t.seen[x] = l.Pace, true
		default:
			t.rates[x] += quantity.Rate(weight * float64(l.Pace-t.rates[x]))
		}
	}
	if t.all == 0 && s.Payload > 0 {
		t.could += quantity.Bytes(t.rate(t.awake(s), s).Over(passed))
		if t.could >= s.Payload {
			t.all = s.Now
		}
	}
}

// carries is what link x is taken for.
func (t *thrifty) carries(x int) quantity.Rate {
	if t.seen[x] {
		return t.rates[x]
	}
	return unknownRate
}

// rate is what the links of a set carry together.
func (t *thrifty) rate(set uint, s *Scene) (sum quantity.Rate) {
	for x, p := range s.Progress {
		if set>>x&1 == 1 && (p.Usable || s.Now-t.spared[x] < connectTime) {
			sum += t.carries(x)
		}
	}
	return sum
}

// left is how long the rest may take, in seconds.
func (t *thrifty) left(s *Scene) float64 {
	if t.Player.Rate > 0 {
		return t.player.lasts(s.Left)
	}
	all := t.all.Seconds()
	if t.all == 0 {
		first, every := t.rate(t.awake(s), s), t.rate(^uint(0), s)
		more := s.Payload - t.could
		alone := min(max(0, (connectTime-s.Now).Seconds()), seconds(more, first))
		all = s.Now.Seconds() + alone + seconds(more-quantity.Bytes(first.BytesPerSecond()*alone), every)
	}
	return (1+t.Slowdown)*all - s.Now.Seconds()
}

// awake are the links that could have brought something by now: to wake another
// one and to connect takes time.
func (t *thrifty) awake(s *Scene) (set uint) {
	for x := range t.seen {
		if t.seen[x] || s.Now > connectTime {
			set |= 1 << x
		}
	}
	return set
}

// choose is the cheapest set that brings the rest in time; all links, if there
// is none.
func (t *thrifty) choose(s *Scene) uint {
	n := len(s.Progress)
	every := uint(1)<<n - 1
	left := t.left(s)
	best, least := every, math.Inf(1)
	try := func(set uint) {
		rate := t.rate(set, s)
		if rate == 0 {
			return
		}
		needed := seconds(s.Left, rate)
		margin := 1.0
		if set != t.set && bits.OnesCount(set) <= bits.OnesCount(t.set) {
			margin = thriftyMargin
		}
		if set != every && needed > margin*left {
			return
		}
		if joules := t.joules(set, needed, s); joules < least && t.isKnown(set) {
			best, least = set, joules
		}
	}
	if n <= mostSets {
		for set := uint(1); set <= every; set++ {
			try(set)
		}
	} else {
		for x := range n {
			try(1 << x)
		}
		try(every)
	}
	if best == every && t.canWait(every, left, s) {
		best = t.set
	}
	for x, p := range s.Progress {
		radio := t.Model.Radios[p.Kind]
		if best>>x&1 == 0 && !t.seen[x] && radio.PromotionJoules()+radio.TailJoules(math.MaxInt64) <= probePart*least {
			best |= 1 << x
		}
	}
	return best
}

// canWait reports whether all links could bring the rest in time, were the
// others woken later: what is put off may never have to be done. A player must not
// run dry.
func (t *thrifty) canWait(every uint, left float64, s *Scene) bool {
	some, all := t.rate(t.set, s).BytesPerSecond(), t.rate(every, s).BytesPerSecond()
	if some == 0 || some >= all {
		return false
	}
	alone := (all*left - float64(s.Left)) / (all - some)
	if t.Player.Rate > 0 {
		alone = min(alone, t.player.lasts(0))
	}
	return alone >= leastAlone.Seconds()
}

// watts is what a set draws while it carries what it can.
func (t *thrifty) watts(set uint, s *Scene) float64 {
	t.loads = t.loads[:0]
	for x, p := range s.Progress {
		if set>>x&1 == 1 {
			t.loads = append(t.loads, energy.Load{Radio: t.Model.Radios[p.Kind], Rate: t.carries(x)})
		}
	}
	return t.Model.PowerMW(t.loads...) * 1e-3
}

// isKnown reports whether one of the links was seen at work: what nothing is
// known of must not be what everything depends on.
func (t *thrifty) isKnown(set uint) bool {
	for x := range t.seen {
		if set>>x&1 == 1 && t.seen[x] {
			return true
		}
	}
	return false
}

// joules is what the rest costs over a set of links that needs so many seconds:
// while they carry it, to wake them, and the tails of all that are or were awake.
func (t *thrifty) joules(set uint, needed float64, s *Scene) (joules float64) {
	for x, p := range s.Progress {
		radio := t.Model.Radios[p.Kind]
		awake := p.Age > 0 && p.Silence < radio.TailTime()
		used := set>>x&1 == 1
		if used && !awake {
			joules += radio.PromotionJoules()
		}
		if used || awake {
			joules += radio.TailJoules(math.MaxInt64)
		}
	}
	return joules + t.watts(set, s)*needed
}
