package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Work is what a link has to do, and how fast it does it.
type Work struct {
	// Usable says that the link can take requests.
	Usable bool
	// Rate is what the link delivers while it has work; 0 if nothing arrives.
	Rate quantity.Rate
	// Left is what its requests in flight have still to deliver,
	// with the wasted bytes that arrive before.
	Left quantity.Bytes
	// Tail is what is wasted after that: the ends of requests that others
	// took over.
	Tail quantity.Bytes
	// Delay is the time until a new request would bring its first byte if
	// nothing else were in flight.
	Delay time.Duration
	// RTT is the round trip time without queues.
	RTT time.Duration
	// Arrived is what the link's connection has brought so far.
	Arrived quantity.Bytes
	// Bandwidth is what the link can deliver at most; 0 if that is not known.
	Bandwidth quantity.Rate
	// Connections is how many the link has.
	Connections int
}

// Join adds another connection of the same link.
func (w *Work) Join(other Work) {
	w.Connections += other.Connections
	w.Rate += other.Rate
	w.Left += other.Left
	w.Tail += other.Tail
	w.Arrived += other.Arrived
	switch {
	case !other.Usable:
	case w.Usable:
		w.Delay, w.RTT = min(w.Delay, other.Delay), min(w.RTT, other.RTT)
	default:
		w.Usable, w.Delay, w.RTT = true, other.Delay, other.RTT
	}
}

// ConnectionShare is how many bytes of its link's share a connection should take, so
// that all connections of the link end together.
func ConnectionShare(one, link Work, share quantity.Bytes) quantity.Bytes {
	if link.Rate == 0 {
		return share
	}
	if one.Rate == 0 {
		// In slow start all connections of a link are alike.
		return min(max(MinimumRequest, (link.Left+share)/quantity.Bytes(max(1, link.Connections))-one.Left), share)
	}
	part := float64(one.Rate) / float64(max(link.Rate, one.Rate))
	return min(max(0, quantity.Bytes(part*float64(link.Left+share))-one.Left), share)
}

// idle is when the link could begin to deliver more, in seconds.
func (w Work) idle() float64 { return max(w.after(w.Left+w.Tail), w.Delay.Seconds()) }

// end is when the link has delivered what it has to, in seconds.
func (w Work) end() float64 { return w.after(w.Left) }

// after is how long the link needs for bytes that are under way, in seconds.
func (w Work) after(bytes quantity.Bytes) float64 {
	switch {
	case bytes == 0:
		return 0
	case w.Rate == 0:
		return math.Inf(1)
	}
	return float64(bytes) / w.Rate.BytesPerSecond()
}

// startTrips is how many round trips count as slow start, which doubles the
// rate with each, from initialWindow bytes on (RFC 5681 3.1; RFC 6928).
const (
	startTrips    = 4
	initialWindow = 10 * SegmentSize
)

// IsStarting reports whether a connection has not yet brought what it would in
// startTrips round trips at its present rate.
func IsStarting(arrived quantity.Bytes, rate quantity.Rate, rtt time.Duration) bool {
	return float64(arrived) < (startTrips * rate).Over(rtt)
}

func (w Work) isStarting() bool { return IsStarting(w.Arrived, w.Rate, w.RTT) }

// slowStart is how long bytes take in slow start, in seconds.
func (w Work) slowStart(bytes quantity.Bytes) float64 {
	return w.RTT.Seconds() * math.Log2(1+float64(bytes)/float64(w.Arrived+initialWindow))
}

// First is how long a new connection needs from its first request until it has
// brought the bytes, in seconds.
func (w Work) First(bytes quantity.Bytes) float64 { return w.RTT.Seconds() + w.slowStart(bytes) }

// soonest is when the link has delivered what it has to, in seconds, if it
// becomes as fast as it may.
func (w Work) soonest() float64 {
	if !w.isStarting() {
		return w.end()
	}
	soonest := w.slowStart(w.Left)
	if w.Bandwidth > 0 {
		soonest = max(soonest, float64(w.Left)/w.Bandwidth.BytesPerSecond())
	}
	return min(w.end(), soonest)
}

// takes is how long the link needs to deliver more bytes, in seconds.
func (w Work) takes(bytes quantity.Bytes) float64 {
	needed := float64(bytes) / w.Rate.BytesPerSecond()
	if w.isStarting() {
		needed = max(needed, w.slowStart(bytes))
	}
	return needed
}

// The least worth of taking work from a link: below that many bytes, or if
// the end comes no earlier than by that time, the link keeps it, since the
// server may have sent the bytes already, which are lost then.
const (
	leastSteal = MinimumRequest
	leastGain  = 20 * time.Millisecond
)

// Late is when the link has delivered what it has to, in seconds; never, if
// nothing comes that is due.
func (w Work) Late(comes bool) float64 {
	if !comes {
		return math.Inf(1)
	}
	return w.end()
}

// Sooner reports whether the link, which has nothing else to do, can deliver
// the bytes before that time in seconds, by a gain.
func (w Work) Sooner(bytes quantity.Bytes, than float64) bool {
	return w.idle()+w.takes(bytes) < than-leastGain.Seconds()
}

// Share is how many of the free bytes link x should take so that all usable
// links end together, at their present rates. It is 0 if others deliver all
// of them before x could help, and all of them if no rate is known.
func Share(x int, works []Work, free quantity.Bytes) quantity.Bytes {
	var few [8]Work // As many links need no memory of their own.
	links := few[:0]
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
		rate += w.Rate.BytesPerSecond()
		offset += w.Rate.BytesPerSecond() * w.idle()
		end = (float64(free) + offset) / rate
		if i+1 < len(links) && end <= links[i+1].idle() {
			break
		}
	}
	return quantity.Bytes(math.Ceil(max(0, works[x].Rate.BytesPerSecond()*(end-works[x].idle()))))
}

// Largest reports whether no link should take more than x of the free bytes.
func Largest(x int, works []Work, free quantity.Bytes) bool {
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
// is 0 if that would gain too little, or if the robbed one, be it still
// starting, could deliver all as soon. For each link largest is the most that
// can be taken from it at once.
func Steal(x int, works []Work, largest []quantity.Bytes) (victim int, bytes quantity.Bytes) {
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
	rate := thief.Rate.BytesPerSecond()
	end := (float64(robbed.Left) + rate*thief.idle()) / (rate + robbed.Rate.BytesPerSecond())
	bytes = min(quantity.Bytes(math.Ceil(rate*(end-thief.idle()))), largest[victim])
	least := min(leastSteal, largest[victim])
	if latest-end < leastGain.Seconds() {
		return 0, 0
	}
	for bytes >= least && thief.idle()+thief.takes(bytes) > robbed.soonest()-leastGain.Seconds() {
		bytes /= 2
	}
	if bytes < least {
		return 0, 0
	}
	return victim, bytes
}

// A link is slow below 100 kB/s, or below a part of the links' mean throughput
// (thesis 8.2.4).
const slowRate quantity.Rate = 800e3

const slowPart = 0.2

// Slow reports whether link x is slow by the static or the dynamic check. The
// only link is not.
func Slow(x int, works []Work) bool {
	var sum quantity.Rate
	var n int
	for _, w := range works {
		if w.Usable {
			sum += w.Rate
			n++
		}
	}
	rate := works[x].Rate
	return n > 1 && (rate < slowRate || rate < slowPart*sum/quantity.Rate(n))
}
