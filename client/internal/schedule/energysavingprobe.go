package schedule

import (
	"math"
)

// isProbed reports whether link x, which is not in the set, is used to measure its rate.
// The rest over the set costs least joules. A link that was never used is probed if that
// costs almost nothing.
//
// A link that was used before may have become better. A probe costs c joules. Not using
// a link that is at its best again costs L watts. A state that has lasted for t seconds ends
// within the next second with a probability of about 1/t. A probe every T seconds costs c/T
// watts, and the missed use costs L · T/2t watts. Their sum is smallest for T = √(2ct/L).
func (t *energySaving) isProbed(x int, left, least float64, s *Scene) bool {
	l, look := &t.links[x], t.probeJoules(x, s)
	switch {
	case !l.seen && look <= probePart*least:
		l.probed = s.Now + probeTime
		return true
	case !l.seen:
		return false
	case s.Now < l.probed:
		return true
	}
	lost := t.missedWatts(x, left, least, s)
	since := (s.Now - l.left).Seconds()
	if lost <= 0 || math.IsNaN(lost) || (s.Now-l.probed).Seconds() < math.Sqrt(2*look*since/lost) {
		return false
	}
	l.probed = s.Now + probeTime
	return true
}

// probeJoules returns the energy to probe link x: to wake it, to use it beside the set, and
// for its tail. The energy that the set would need for the same bytes is subtracted.
func (t *energySaving) probeJoules(x int, s *Scene) float64 {
	radio, rate := t.Model.Radios[s.Progress[x].Kind], t.expected(x)
	watts := (radio.ActiveMW + radio.DownMJ*rate.MegabitsPerSecond()) * 1e-3
	if sum := t.rate(t.set, s); sum > 0 {
		watts -= t.watts(t.set, s) * float64(rate/sum)
	}
	return radio.PromotionJoules() + radio.TailJoules(math.MaxInt64) + max(0, watts)*probeTime.Seconds()
}

// missedWatts returns the power that is lost without link x if the link is at its best.
func (t *energySaving) missedWatts(x int, left, least float64, s *Scene) float64 {
	l := &t.links[x]
	seen := l.rate
	l.rate = history{}
	l.rate.add(max(l.best, unknownRate), probeTime)
	_, hoped := t.cheapest(left, s)
	l.rate = seen
	return (least - hoped) / seconds(s.Left, t.rate(t.set, s))
}
