package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Work is what a link has to do, and how fast it does it.
type Work struct {
	// Usable says that the link can take requests.
	Usable bool
	// Rate is what the link delivers while it has work, in bytes per second;
	// 0 if nothing arrives.
	Rate float64
	// Left is what its requests in flight have still to deliver, in bytes.
	Left int64
	// Delay is the time until a new request would bring its first byte if
	// nothing else were in flight.
	Delay time.Duration
}

// idle is when the link could begin to deliver more, in seconds.
func (w Work) idle() float64 { return max(w.end(), w.Delay.Seconds()) }

// end is when the link has delivered what it has to, in seconds.
func (w Work) end() float64 {
	switch {
	case w.Left == 0:
		return 0
	case w.Rate == 0:
		return math.Inf(1)
	}
	return float64(w.Left) / w.Rate
}

// The least worth of taking work from a link: below that many bytes, or if
// the end comes no earlier than by that time, the link keeps it, since the
// server may have sent the bytes already, which are lost then.
const (
	leastSteal = MinimumRequest
	leastGain  = 20 * time.Millisecond
)

// Share is how many of the free bytes link x should take so that all usable
// links end together, at their present rates. It is 0 if others deliver all
// of them before x could help, and all of them if no rate is known.
func Share(x int, works []Work, free int64) int64 {
	var links []Work
	for _, w := range works {
		if w.Usable && w.Rate > 0 && !math.IsInf(w.idle(), 1) {
			links = append(links, w)
		}
	}
	if len(links) == 0 {
		return free
	}
	if !works[x].Usable || works[x].Rate == 0 {
		return 0
	}
	// Links join, the one that is idle first at the beginning, until they end
	// before the next one would be idle.
	slices.SortFunc(links, func(a, b Work) int { return cmp.Compare(a.idle(), b.idle()) })
	var end, rate, offset float64
	for i, w := range links {
		rate += w.Rate
		offset += w.Rate * w.idle()
		end = (float64(free) + offset) / rate
		if i+1 < len(links) && end <= links[i+1].idle() {
			break
		}
	}
	return int64(math.Ceil(max(0, works[x].Rate*(end-works[x].idle()))))
}

// Largest reports whether no link should take more than x of the free bytes.
func Largest(x int, works []Work, free int64) bool {
	share := Share(x, works, free)
	for y, w := range works {
		if y != x && w.Usable && Share(y, works, free) > share {
			return false
		}
	}
	return true
}

// Steal is how much link x should take from which other link when no bytes
// are free: from the one that ends last, so much that both end together. It
// is 0 if that would gain too little. For each link largest is the most that
// can be taken from it at once.
func Steal(x int, works []Work, largest []int64) (victim int, bytes int64) {
	if !works[x].Usable || works[x].Rate == 0 {
		return 0, 0
	}
	latest := 0.0
	for y, w := range works {
		if y != x && largest[y] > 0 && w.end() > latest {
			victim, latest = y, w.end()
		}
	}
	if latest == 0 {
		return 0, 0
	}
	// The thief delivers from idle on, the victim all the time, until end.
	thief, robbed := works[x], works[victim]
	end := (float64(robbed.Left) + thief.Rate*thief.idle()) / (thief.Rate + robbed.Rate)
	bytes = min(int64(math.Ceil(thief.Rate*(end-thief.idle()))), largest[victim])
	if bytes < min(leastSteal, largest[victim]) || latest-end < leastGain.Seconds() {
		return 0, 0
	}
	return victim, bytes
}

// A link is slow below these (thesis, section 4.3.6): a throughput in bytes
// per second, and a part of the links' mean throughput.
const (
	slowRate = 100_000
	slowPart = 0.2
)

// Slow reports whether link x is slow by the static or the dynamic check. The
// only link is not.
func Slow(x int, works []Work) bool {
	var sum float64
	var n int
	for _, w := range works {
		if w.Usable {
			sum += w.Rate
			n++
		}
	}
	rate := works[x].Rate
	return n > 1 && (rate < slowRate || rate < slowPart*sum/float64(n))
}
