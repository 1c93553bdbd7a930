package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Work describes the outstanding work of a link or connection, and its rate.
type Work struct {
	// Usable is true if the link can take requests.
	Usable bool
	// Rate is the rate of the link while it has work, 0 if nothing arrives.
	Rate quantity.Rate
	// Left counts the outstanding bytes of the requests in flight, and the wasted
	// bytes that arrive before them.
	Left quantity.Bytes
	// Tail counts the wasted bytes that arrive after Left: the ends of requests that
	// another link took over.
	Tail quantity.Bytes
	// Delay is the time from a new request to its first byte, if nothing else is in
	// flight.
	Delay time.Duration
	// RTT is the round trip time without queues.
	RTT time.Duration
	// Arrived counts the bytes that have arrived on the link's connection.
	Arrived quantity.Bytes
	// Bandwidth is the highest rate of the link, 0 if unknown.
	Bandwidth quantity.Rate
	// Connections is the number of connections of the link.
	Connections int
}

// Join adds the work of another connection of the same link.
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

// ConnectionShare returns the part of the link's share that one connection should take,
// so that all connections of the link end together.
func ConnectionShare(connection, link Work, share quantity.Bytes) quantity.Bytes {
	if link.Rate == 0 {
		return share
	}
	if connection.Rate == 0 {
		// In slow start all connections of a link get equal parts.
		return min(max(MinimumRequest, (link.Left+share)/quantity.Bytes(max(1, link.Connections))-connection.Left), share)
	}
	part := float64(connection.Rate) / float64(max(link.Rate, connection.Rate))
	return min(max(0, quantity.Bytes(part*float64(link.Left+share))-connection.Left), share)
}

// idle returns the time until the link can start to deliver further bytes, in seconds.
func (w Work) idle() float64 { return max(w.after(w.Left+w.Tail), w.Delay.Seconds()) }

// End returns the time until the link has delivered its outstanding bytes, in seconds. It is
// infinite if the rate is 0.
func (w Work) End() float64 { return w.after(w.Left) }

// after returns how long the link needs for bytes in flight, in seconds.
func (w Work) after(bytes quantity.Bytes) float64 {
	switch {
	case bytes == 0:
		return 0
	case w.Rate == 0:
		return math.Inf(1)
	}
	return float64(bytes) / w.Rate.BytesPerSecond()
}

// Slow start begins with initialWindow bytes and doubles the rate with each round trip (RFC
// 5681 3.1; RFC 6928).
const initialWindow = 10 * SegmentSize

// IsStarting reports whether a connection has received less than it would in FewTrips
// round trips at its present rate.
func IsStarting(arrived quantity.Bytes, rate quantity.Rate, rtt time.Duration) bool {
	return float64(arrived) < (FewTrips * rate).Over(rtt)
}

func (w Work) isStarting() bool { return IsStarting(w.Arrived, w.Rate, w.RTT) }

// slowStart returns how long the bytes take in slow start, in seconds.
func (w Work) slowStart(bytes quantity.Bytes) float64 {
	return w.RTT.Seconds() * math.Log2(1+float64(bytes)/float64(w.Arrived+initialWindow))
}

// First returns the time from the first request of a new connection until the bytes have
// arrived, in seconds.
func (w Work) First(bytes quantity.Bytes) float64 { return w.RTT.Seconds() + w.slowStart(bytes) }

// soonest returns the earliest time at which the link can have delivered its outstanding
// bytes, in seconds: a link in slow start becomes faster.
func (w Work) soonest() float64 {
	if !w.isStarting() {
		return w.End()
	}
	soonest := w.slowStart(w.Left)
	if w.Bandwidth > 0 {
		soonest = max(soonest, float64(w.Left)/w.Bandwidth.BytesPerSecond())
	}
	return min(w.End(), soonest)
}

// takes returns how long the link needs to deliver further bytes, in seconds.
func (w Work) takes(bytes quantity.Bytes) float64 {
	needed := float64(bytes) / w.Rate.BytesPerSecond()
	if w.isStarting() {
		needed = max(needed, w.slowStart(bytes))
	}
	return needed
}

// A link keeps its work if fewer than leastSteal bytes would move, or if the end would
// come earlier by less than leastGain. The server may have sent these bytes already, and
// then they are wasted.
const (
	leastSteal = MinimumRequest
	leastGain  = 20 * time.Millisecond
)

// Sooner reports whether the link, idle otherwise, can deliver the bytes at least
// leastGain before than, a time in seconds.
func (w Work) Sooner(bytes quantity.Bytes, than float64) bool {
	return w.idle()+w.takes(bytes) < than-leastGain.Seconds()
}

// Share returns how many of the free bytes link x should take so that all usable links
// end together at their present rates. It returns 0 if the other links deliver all free
// bytes before link x could start. It returns all of them if no rate is known.
func Share(x int, works []Work, free quantity.Bytes) quantity.Bytes {
	var few [8]Work // Up to 8 links need no allocation.
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
	// Add links in the order in which they become idle. Stop when the added links finish
	// before the next link becomes idle.
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

// Largest reports whether link x gets the largest share of the free bytes.
func Largest(x int, works []Work, free quantity.Bytes) bool {
	share := Share(x, works, free)
	for y, w := range works {
		if y != x && w.Usable && Share(y, works, free) > share {
			return false
		}
	}
	return true
}

// Steal decides how many bytes link x should take from another link when no bytes are
// free. The victim is the link with the latest end, and both should end together.
// largest limits for each link how many bytes can be taken at once. Steal returns 0 if
// the gain is too small, or if a victim in slow start could finish as early by itself.
func Steal(x int, works []Work, largest []quantity.Bytes) (victim int, bytes quantity.Bytes) {
	if !works[x].Usable || works[x].Rate == 0 {
		return 0, 0
	}
	latest := 0.0
	for y, w := range works {
		if y != x && largest[y] > 0 && w.End() > latest {
			victim, latest = y, w.End()
		}
	}
	if latest == 0 {
		return 0, 0
	}
	// Until end the victim always delivers, and the stealer from its idle time on.
	stealer, robbed := works[x], works[victim]
	rate := stealer.Rate.BytesPerSecond()
	end := (float64(robbed.Left) + rate*stealer.idle()) / (rate + robbed.Rate.BytesPerSecond())
	bytes = min(quantity.Bytes(math.Ceil(rate*(end-stealer.idle()))), largest[victim])
	least := min(leastSteal, largest[victim])
	if latest-end < leastGain.Seconds() {
		return 0, 0
	}
	for bytes >= least && stealer.idle()+stealer.takes(bytes) > robbed.soonest()-leastGain.Seconds() {
		bytes /= 2
	}
	if bytes < least {
		return 0, 0
	}
	return victim, bytes
}

// A link is slow below 100 kB/s, or below 0.2 of the links' mean throughput
// (thesis 8.2.4).
const slowRate quantity.Rate = 800e3

const slowPart = 0.2

// Slow reports whether link x is slow by the static or the dynamic check. A single
// link is never slow.
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
