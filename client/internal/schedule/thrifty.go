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
// that is left, the one that brings it for the least, if they carry in that time
// what they carried in as much time before. What was used and is not any more,
// because others can do the rest in time, shows in its tail alone; now and then it
// is looked at again.
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
	// thriftyMargin is the part of the time left that the rest may take when
	// links are left; they are taken again when it would take all of it.
	thriftyMargin = 0.9
	// probePart is the part of what the rest costs that it may cost to find out
	// what a link carries which was never used.
	probePart = 0.05
	// longestHorizon is more than any download takes, in seconds.
	longestHorizon = 1e6
	// lookTime is for how long a link is used to see what it carries: until it is
	// connected, and its rate is averaged.
	lookTime = connectTime
	// beginTrips is how many round trips a rate says too little: slow start takes
	// eight to 256 initial windows, 3.7 MB.
	beginTrips = 8
	// connectTime is how long a link that was not used may take to be connected.
	connectTime = 2 * time.Second
	// leastAlone is for how long the links in use must do, so that all bring the
	// rest later: as long as it takes to wake them.
	leastAlone = connectTime
	// leastPlayed is the same while somebody plays: a link that is woken then is in
	// slow start when it is connected, and may be slow itself.
	leastPlayed = 2 * connectTime
	// aloneTime is how much of its work a link with one connection orders at a time.
	aloneTime = time.Second
	// mostSets bounds the number of links of which all sets are looked at.
	mostSets = 6
)

// UsualSlowdown allows twice the time: one of two links of one speed does.
const UsualSlowdown = 1.0

// Next is as with Adaptive before a player, who waits for the bytes in order. Else the
// one connection must not wait for the next order: it gets as much as first
// requests are in slow start, and then what it delivers in aloneTime.
func (t Thrifty) Next(x int, known Known) quantity.Bytes {
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

// Plan makes it a Planner.
func (t Thrifty) Plan() Plan { return &thrifty{Thrifty: t, player: playback{Player: t.Player}} }

type thrifty struct {
	Thrifty
	player playback
	links  []watched
	// at is when the links were looked at, and horizon how long the rest could
	// take then.
	at, horizon time.Duration
	// could is what all links could have brought by now.
	could quantity.Bytes
	// all is when all links would have been done, once could says so.
	all time.Duration
	// set is what the rest is to come over, a bit for each link; 0 before the first
	// decision. Others are used only to see what they carry.
	set   uint
	loads []energy.Load
}

// watched is what is known of a link.
type watched struct {
	// rate is what it carried while it was at work, and best the most that it was
	// taken for. Before it was seen both say nothing.
	rate history
	best quantity.Rate
	seen bool
	// spared is when it was last not used: a while later it is connected.
	spared time.Duration
	// left is since when the set is without it, and looked until when it was used
	// since, or is to be.
	left, looked time.Duration
}

// Opens makes it an Opener.
func (*thrifty) Opens() {}

func (*thrifty) Every() time.Duration { return thriftyPeriod }

// Use is the set for the rest. Until something is known of Wi-Fi it is used
// alone: another radio that was woken for nothing costs most of all.
func (t *thrifty) Use(s *Scene, use []bool) {
	if t.links == nil {
		t.links = make([]watched, len(use))
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
	left := t.leaves(s)
	t.horizon = time.Duration(max(0, min(left, longestHorizon)) * float64(time.Second))
	least := t.choose(left, s)
	for x := range use {
		use[x] = t.set>>x&1 == 1
	}
	t.keep(use, s)
	for x := range use {
		use[x] = use[x] || t.isTried(x, left, least, s)
	}
}

// Waits makes it a Waiter: a player plays what is buffered, or waits for more of it.
func (t *thrifty) Waits(s *Scene) float64 {
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

// keep says that the set is these links.
func (t *thrifty) keep(use []bool, s *Scene) {
	t.set = 0
	for x := range use {
		if use[x] {
			t.set |= 1 << x
			t.links[x].left, t.links[x].looked = s.Now, s.Now
		}
	}
}

// observe learns what links carry that are at work, and what all could have
// brought.
func (t *thrifty) observe(s *Scene) {
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
		begins := isNew && float64(l.Arrived) < (beginTrips*l.Pace).Over(l.RTT)
		if l.Spared || p.Unfinished == 0 || l.Pace == 0 && !w.seen || begins {
			continue
		}
		w.seen = true
		w.rate.add(l.Pace, passed)
		w.best = max(w.best, w.rate.over(0))
	}
	if t.all == 0 && s.Payload > 0 {
		horizon := t.horizon
		t.horizon = 0 // What they carry now.
		t.could += quantity.Bytes(t.rate(t.awake(s), s).Over(passed))
		t.horizon = horizon
		if t.could >= s.Payload {
			t.all = s.Now
		}
	}
}

// carries is what link x is taken for: for the next so many seconds what it
// carried in the last so many.
func (t *thrifty) carries(x int) quantity.Rate {
	if l := &t.links[x]; l.seen {
		return l.rate.over(t.horizon)
	}
	return unknownRate
}

// rate is what the links of a set carry together.
func (t *thrifty) rate(set uint, s *Scene) (sum quantity.Rate) {
	for x, p := range s.Progress {
		if set>>x&1 == 1 && (p.Usable || s.Now-t.links[x].spared < connectTime) {
			sum += t.carries(x)
		}
	}
	return sum
}

// leaves is how long the rest may take, in seconds.
func (t *thrifty) leaves(s *Scene) float64 {
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
	for x := range t.links {
		if t.links[x].seen || s.Now > connectTime {
			set |= 1 << x
		}
	}
	return set
}

// choose sets the cheapest set that brings the rest in the time that is left, and
// returns what it costs; all links, if there is none. If all would bring it in time
// later, too, the set stays, unless it costs much more: what is put off may never
// have to be done.
func (t *thrifty) choose(left float64, s *Scene) (least float64) {
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

// cheapest is the cheapest set that brings the rest in the time that is left, and
// what it costs; all links, if there is none.
func (t *thrifty) cheapest(left float64, s *Scene) (best uint, least float64) {
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
	return best, least
}

// isTried reports whether link x, which the set is without, is used all the same to
// see what it carries, where the rest costs so many joules. One that was never used
// is, if that costs next to nothing.
//
// One that was left may be better by now. To look costs c joules; to miss that it
// is as good as at its best costs L watts. What has lasted for t is over within the
// next second with a chance of about 1/t. A look each T seconds costs c/T watts,
// and what is missed L · T/2t: least together with T = √(2ct/L).
func (t *thrifty) isTried(x int, left, least float64, s *Scene) bool {
	l, look := &t.links[x], t.look(x, s)
	switch {
	case !l.seen && look <= probePart*least:
		l.looked = s.Now + lookTime
		return true
	case !l.seen:
		return false
	case s.Now < l.looked:
		return true
	}
	lost := t.missed(x, left, least, s)
	since := (s.Now - l.left).Seconds()
	if lost <= 0 || math.IsNaN(lost) || (s.Now-l.looked).Seconds() < math.Sqrt(2*look*since/lost) {
		return false
	}
	l.looked = s.Now + lookTime
	return true
}

// look is what it costs to see what link x carries, in joules: to wake it, to use
// it beside the set for a while, but for what its bytes would cost over the set,
// and its tail.
func (t *thrifty) look(x int, s *Scene) float64 {
	radio, rate := t.Model.Radios[s.Progress[x].Kind], t.carries(x)
	watts := (radio.ActiveMW + radio.DownMJ*rate.MegabitsPerSecond()) * 1e-3
	if sum := t.rate(t.set, s); sum > 0 {
		watts -= t.watts(t.set, s) * float64(rate/sum)
	}
	return radio.PromotionJoules() + radio.TailJoules(math.MaxInt64) + max(0, watts)*lookTime.Seconds()
}

// missed is what it costs to do without link x, in watts, if it is at its best.
func (t *thrifty) missed(x int, left, least float64, s *Scene) float64 {
	l := &t.links[x]
	seen := l.rate
	l.rate = history{}
	l.rate.add(max(l.best, unknownRate), lookTime)
	_, hoped := t.cheapest(left, s)
	l.rate = seen
	return (least - hoped) / seconds(s.Left, t.rate(t.set, s))
}

// canWait reports whether all links could bring the rest in time, were the others
// woken later. A player must not run dry.
func (t *thrifty) canWait(every uint, left float64, s *Scene) bool {
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
	for x := range t.links {
		if set>>x&1 == 1 && t.links[x].seen {
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
