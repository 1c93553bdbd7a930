package schedule

import (
	"math"
	"math/bits"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// EnergySaving is Adaptive with another objective: the least energy within a time limit.
// The limit is the time over all links plus a stated part of it.
//
// At each check it takes, of all sets of links that deliver the rest in the time left, the
// set with the least energy. Each link is expected to deliver in that time as much as in
// an equally long time before. A link that is no longer used costs only the tail of its
// radio. Now and then it is probed, because its rate may have changed.
type EnergySaving struct {
	Adaptive
	// Model is the energy model of the radios.
	Model *energy.Model
	// Slowdown is the part by which a download may take longer than over all links. 0
	// allows no delay.
	Slowdown float64
	// Player, if there is one, must not stall. Its playback sets the time limit for the
	// rest. All links are used until the playback begins.
	Player Player
}

const (
	// savingPeriod is the check interval.
	savingPeriod = 100 * time.Millisecond
	// savingMargin is the part of the time left that a smaller set may need for the rest.
	// A set in use may need all of the time.
	savingMargin = 0.9
	// probePart limits the energy to probe a link that was never used, as a part of the
	// energy for the rest.
	probePart = 0.05
	// longestHorizon is longer than any download, in seconds.
	longestHorizon = 1e6
	// probeTime is how long a probe uses a link: until it is connected and has a mean
	// rate.
	probeTime = connectTime
	// startupTrips is for how many round trips at its rate a new link is not measured:
	// slow start takes eight to 256 initial windows, 3.7 MB.
	startupTrips = 8
	// connectTime is the longest expected time to connect an unused link.
	connectTime = 2 * time.Second
	// leastAlone is how long the links in use must suffice before other links are woken:
	// as long as it takes to wake them.
	leastAlone = connectTime
	// leastPlayed is the same with a player. A link that is woken then is in slow start,
	// and may itself be slow.
	leastPlayed = 2 * connectTime
	// aloneTime is the work that a link with one connection requests at a time.
	aloneTime = time.Second
	// mostSets is the largest number of links for which all sets are compared.
	mostSets = 6
)

// UsualSlowdown allows twice the time: one of two equally fast links needs that.
const UsualSlowdown = 1.0

// Next returns the size of Adaptive before a player, because the player waits for the
// bytes in order. Without a player, the only connection of a link must not wait for its
// next request. So it gets the size of the first requests in slow start, and later what it
// delivers in aloneTime.
func (t EnergySaving) Next(x int, known Known) quantity.Bytes {
	size := t.Adaptive.Next(x, known)
	if t.Player.Rate > 0 {
		return size
	}
	l := known.Links[x]
	if IsStarting(l.Arrived, l.Pace, l.RTT) {
		return max(size, Defaults.FirstRequests)
	}
	return max(size, min(quantity.Bytes(l.Pace.Over(aloneTime)), MostOrder(l.Arrived)))
}

func (t EnergySaving) Plan() Plan {
	return &energySaving{EnergySaving: t, player: playback{Player: t.Player}}
}

type energySaving struct {
	EnergySaving
	player playback
	links  []observed
	// at is the time of the last check. horizon is the time that was left for the rest
	// at that check.
	at, horizon time.Duration
	// possible counts the bytes that all links together could have delivered by now.
	possible quantity.Bytes
	// all is the time at which all links together would have finished, 0 before that time.
	all time.Duration
	// set holds the links for the rest, one bit for each; 0 before the first decision.
	// Links outside the set are only probed.
	set   uint
	loads []energy.Load
}

// observed holds what is known of a link.
type observed struct {
	// rate is the history of the link's rate, and best is the highest mean rate so far.
	// Both are meaningless until seen is true.
	rate history
	best quantity.Rate
	seen bool
	// spared is the last time at which the link was not used. The link needs up to
	// connectTime after it to connect.
	spared time.Duration
	// left is the time at which the set lost the link. probed is the end of the last
	// probe since then.
	left, probed time.Duration
}

func (*energySaving) Opens() {}

func (*energySaving) Every() time.Duration { return savingPeriod }

// Use uses the set for the rest, and links to probe. Until the rate of a link is known, it
// uses only Wi-Fi: to wake another radio for nothing costs more than any other mistake.
func (t *energySaving) Use(s *Scene, use []bool) {
	if t.links == nil {
		t.links = make([]observed, len(use))
	}
	t.observe(s)
	if t.Player.Rate > 0 && s.Payload > 0 {
		t.player.observe(s.Now, s.InOrder-s.Start, s.Left == 0)
		if !t.player.playing {
			useAll(use)
			t.keep(use, s)
			return
		}
	}
	if s.Payload == 0 || !t.isKnown(^uint(0)) {
		useKind(energy.Wifi, s, use)
		t.keep(use, s)
		return
	}
	left := t.timeLeft(s)
	t.horizon = time.Duration(max(0, min(left, longestHorizon)) * float64(time.Second))
	least := t.choose(left, s)
	for x := range use {
		use[x] = t.set>>x&1 == 1
	}
	t.keep(use, s)
	for x := range use {
		use[x] = use[x] || t.isProbed(x, left, least, s)
	}
}

// Waits implements Waiter: a player plays what is buffered, or waits until its buffer is
// full.
func (t *energySaving) Waits(s *Scene) float64 {
	switch {
	case t.Player.Rate == 0 || s.Payload == 0:
		return 0
	case t.player.playing:
		return t.player.lasts(0)
	}
	rate := t.rate(t.set, s)
	if rate == 0 {
		return 0
	}
	return max(0, float64(t.Player.Buffer)-t.player.buffered()) / rate.BytesPerSecond()
}

// keep makes the used links the set.
func (t *energySaving) keep(use []bool, s *Scene) {
	t.set = 0
	for x := range use {
		if use[x] {
			t.set |= 1 << x
			t.links[x].left, t.links[x].probed = s.Now, s.Now
		}
	}
}

// observe records the rates of busy links, and what all links could have delivered.
func (t *energySaving) observe(s *Scene) {
	passed := s.Now - t.at
	if passed <= 0 {
		return
	}
	t.at = s.Now
	for x, p := range s.Progress {
		l, w := s.Links[x], &t.links[x]
		if l.Spared {
			w.spared = s.Now
		}
		isNew := p.Age < delayTime || w.spared > 0 && s.Now-w.spared < delayTime
		begins := isNew && float64(l.Arrived) < (startupTrips*l.Pace).Over(l.RTT)
		if l.Spared || p.Unfinished == 0 || l.Pace == 0 && !w.seen || begins {
			continue
		}
		w.seen = true
		w.rate.add(l.Pace, passed)
		w.best = max(w.best, w.rate.over(0))
	}
	if t.all == 0 && s.Payload > 0 {
		horizon := t.horizon
		t.horizon = 0 // The present rates.
		t.possible += quantity.Bytes(t.rate(t.connectable(s), s).Over(passed))
		t.horizon = horizon
		if t.possible >= s.Payload {
			t.all = s.Now
		}
	}
}

// expected returns the expected mean rate of link x within horizon: its mean rate over an
// equally long time in the past.
func (t *energySaving) expected(x int) quantity.Rate {
	if l := &t.links[x]; l.seen {
		return l.rate.over(t.horizon)
	}
	return unknownRate
}

// rate returns the rate of the links of a set together.
func (t *energySaving) rate(set uint, s *Scene) (sum quantity.Rate) {
	for x, p := range s.Progress {
		if set>>x&1 == 1 && (p.Usable || s.Now-t.links[x].spared < connectTime) {
			sum += t.expected(x)
		}
	}
	return sum
}

// timeLeft returns how long the rest may take, in seconds.
func (t *energySaving) timeLeft(s *Scene) float64 {
	if t.Player.Rate > 0 {
		return t.player.lasts(s.Left)
	}
	all := t.all.Seconds()
	if t.all == 0 {
		first, every := t.rate(t.connectable(s), s), t.rate(^uint(0), s)
		more := s.Payload - t.possible
		alone := min(max(0, (connectTime-s.Now).Seconds()), seconds(more, first))
		all = s.Now.Seconds() + alone + seconds(more-quantity.Bytes(first.BytesPerSecond()*alone), every)
	}
	return (1+t.Slowdown)*all - s.Now.Seconds()
}

// connectable returns the links that could have delivered bytes by now: waking and
// connecting a link takes time.
func (t *energySaving) connectable(s *Scene) (set uint) {
	for x := range t.links {
		if t.links[x].seen || s.Now > connectTime {
			set |= 1 << x
		}
	}
	return set
}

// choose sets t.set to the cheapest set that delivers the rest in the time left, or to all
// links if there is none. It returns the energy for the rest in joules. If all links would
// also be in time later, the set stays, unless waiting costs much more: the other links
// may never be needed.
func (t *energySaving) choose(left float64, s *Scene) (least float64) {
	best, least := t.cheapest(left, s)
	every := uint(1)<<len(s.Progress) - 1
	if best == every && t.canWait(every, left, s) {
		waiting := t.joules(t.set, seconds(s.Left, t.rate(t.set, s)), s)
		if (1-energy.Hysteresis)*waiting <= least {
			return least
		}
	}
	t.set = best
	return least
}

// cheapest returns the cheapest set that delivers the rest in the time left, and its energy
// in joules. It returns all links if there is no such set.
func (t *energySaving) cheapest(left float64, s *Scene) (best uint, least float64) {
	n := len(s.Progress)
	every := uint(1)<<n - 1
	best, least = every, math.Inf(1)
	try := func(set uint) {
		rate := t.rate(set, s)
		if rate == 0 {
			return
		}
		needed := seconds(s.Left, rate)
		margin := 1.0
		if set != t.set && bits.OnesCount(set) <= bits.OnesCount(t.set) {
			margin = savingMargin
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
	return best, least
}

// canWait reports whether all links could still deliver the rest in time if the unused
// links are woken later. A player must not stall meanwhile.
func (t *energySaving) canWait(every uint, left float64, s *Scene) bool {
	some, all := t.rate(t.set, s).BytesPerSecond(), t.rate(every, s).BytesPerSecond()
	if some == 0 || some >= all {
		return false
	}
	alone := (all*left - float64(s.Left)) / (all - some)
	if t.Player.Rate > 0 {
		return min(alone, t.player.lasts(0)) >= leastPlayed.Seconds()
	}
	return alone >= leastAlone.Seconds()
}

// watts returns the power of a set at its full rate.
func (t *energySaving) watts(set uint, s *Scene) float64 {
	t.loads = t.loads[:0]
	for x, p := range s.Progress {
		if set>>x&1 == 1 {
			t.loads = append(t.loads, energy.Load{Radio: t.Model.Radios[p.Kind], Rate: t.expected(x)})
		}
	}
	return t.Model.PowerMW(t.loads...) * 1e-3
}

// isKnown reports whether the rate of at least one link in the set was measured. A set
// without a measured rate is never chosen.
func (t *energySaving) isKnown(set uint) bool {
	for x := range t.links {
		if set>>x&1 == 1 && t.links[x].seen {
			return true
		}
	}
	return false
}

// joules returns the energy for the rest over a set that needs so many seconds: while its
// links deliver, to wake them, and for the tails of all radios that are or were awake.
func (t *energySaving) joules(set uint, needed float64, s *Scene) (joules float64) {
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
