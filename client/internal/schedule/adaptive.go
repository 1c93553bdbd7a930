package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Adaptive keeps every connection busy with few bytes requested ahead. When a link
// changes, little needs to be cancelled. Growth decides how many connections a link has.
// Share and Steal divide the work at the end.
type Adaptive struct{}

// OpeningOrder is the request of each connection before the size is known, in bytes. All
// first connections of a link together request more than slow start delivers in the round
// trip to the next request. A slow link must deliver all of it by itself.
const OpeningOrder = 2 * MinimumRequest

// FirstOrder is the smallest later request, in bytes.
const FirstOrder = 4 * MinimumRequest

// OrderTime is how much of its work a connection requests at a time, or may repeat of another
// one's. Headers of such requests take 0.001 of a slow link, and less of a fast one. With a
// long round trip the bytes in flight are more than this work.
const OrderTime = 250 * time.Millisecond

// Ahead is how many times what a connection transfers in its delay it has to do at least.
const Ahead = 1.25

// PaceWindow is the time over which a connection's throughput is averaged: a few round trips.
const PaceWindow = 500 * time.Millisecond

// FewTrips is how many round trips TCP needs to show what has changed: that slow start is
// over, that further connections help, that the server has stopped sending, or that a link is
// slow. What a server sends within them is on its way.
const FewTrips = 4

// MostOrder returns the largest request of a connection on which so many bytes have
// arrived. Its first rates are inexact, and TCP at most doubles the rate in a round trip.
func MostOrder(arrived quantity.Bytes) quantity.Bytes { return FirstOrder + 2*arrived }

// StartRoom returns how many bytes each connection of a link can receive in slow start
// before its next request is answered: two round trips of its part of the link's highest
// rate. It returns the largest number if that rate is unknown.
func StartRoom(most quantity.Rate, connections int, trip time.Duration) quantity.Bytes {
	if most == 0 {
		return math.MaxInt64
	}
	return max(quantity.Bytes((2*most).Over(trip))/quantity.Bytes(connections), MinimumRequest)
}

// Next returns what the connection delivers in OrderTime, between FirstOrder and MostOrder.
// Before its first byte it returns OpeningOrder. For a reader in order a slow connection
// gets only MinimumRequest: other connections would take a larger range over before it
// arrives, again and again.
func (Adaptive) Next(x int, known Known) quantity.Bytes {
	l := known.Links[x]
	if l.Requests > 0 && l.Arrived == 0 {
		return OpeningOrder
	}
	size := quantity.Bytes(l.Pace.Over(OrderTime))
	if known.InOrder && l.Arrived > 0 && size <= MinimumRequest {
		return MinimumRequest
	}
	return max(min(size, MostOrder(l.Arrived)), FirstOrder)
}

// Growth decides how many connections a link has.
//
// A link without a queue is not full. Random loss, small windows or a long round trip hold
// its connections back, and further connections deliver more. So their number is doubled
// while no queue forms and each doubling makes the link faster. A doubling that does not
// help is undone after the slow start of the new connections.
//
// While a queue stands, connections are closed one after another: they bring nothing, and
// take from other users of the link. The rates of connections say less than the queue:
// behind a lost packet nothing arrives for as long as the queue is. When the queue is gone,
// the link gets the last closed connection back.
type Growth struct {
	// Most is the largest number of connections of the link.
	Most int

	// begun and ends limit the present round. total counts the bytes that had arrived
	// when it began.
	begun, ends time.Duration
	total       quantity.Bytes
	// rate is the rate of the round before.
	rate quantity.Rate
	// count is the wanted number of connections. without is their number before a
	// doubling, 0 without a doubling. withoutRate is their rate then. patience is how many
	// more rounds the new connections may still be in slow start.
	count, without, patience int
	withoutRate              quantity.Rate
	// pause is how many rounds without a queue pass before the next doubling. lastPause
	// is the length of the last pause.
	pause, lastPause int
	// enough is the number of connections with a queue before the last one was closed.
	// floor is the number that the link needs at least, as measured.
	enough, floor int
}

// Flow describes the connections of a link in a round.
type Flow struct {
	// Total counts the bytes that have arrived on all connections.
	Total       quantity.Bytes
	Connections int
	// RTT is the round trip time with queues of the connection with the shortest queue.
	// MinRTT is the round trip time without queues.
	RTT, MinRTT time.Duration
	// Busy is true if the connections have always had work.
	Busy bool

	// rate is the rate of all connections. slowest is the rate of the slowest connection
	// that may be closed.
	rate, slowest quantity.Rate
}

// Add adds a connection: its last and least round trip time and its rate. A link's first
// connection is never closed.
func (f *Flow) Add(last, least time.Duration, rate quantity.Rate, isFirst bool) {
	f.rate += rate
	if !isFirst && (f.slowest == 0 || rate < f.slowest) {
		f.slowest = rate
	}
	if f.Connections == 0 || last < f.RTT {
		f.RTT = last
	}
	if f.Connections == 0 || least < f.MinRTT {
		f.MinRTT = least
	}
	f.Connections++
}

// leastRound is the least time between two decisions, which is otherwise FewTrips round trips, one of them
// through the queue. Below it batches of arrivals would decide.
const leastRound = 150 * time.Millisecond

const (
	// worth is the factor by which twice the connections must make a link faster. A link that
	// gains more in one round still becomes faster.
	worth = 1.1
	// queued is the part of the least round trip that a queue adds at least: what is ordered ahead adds as
	// much by itself. An addition below leastQueue may be chance (MIN_RTT_THRESH of RFC 9406 4.2).
	queued     = Ahead - 1
	leastQueue = 4 * time.Millisecond
)

// startConnections is the number of connections at the start. Browsers open as many to a
// server that speaks HTTP/1.1. They shorten slow start, which takes most of the time of a
// small file.
const startConnections = 6

// Connections returns the wanted number of connections.
func (g *Growth) Connections() int { return max(g.count, 1) }

// Begin returns the number of connections at the start.
func (g *Growth) Begin() int {
	g.count = min(startConnections, g.Most)
	return g.count
}

// Count returns the wanted number of connections at now.
func (g *Growth) Count(now time.Duration, f Flow) int {
	g.count = max(g.count, 1)
	if g.ends == 0 || !f.Busy || f.Connections == 0 {
		g.begin(now, f)
		return g.count
	}
	if now < g.ends {
		return g.count
	}
	rate := (f.Total - g.total).Per(now - g.begun)
	before := g.rate
	g.rate = rate
	g.begin(now, f)
	if f.Connections != g.count {
		return g.count // Some are still connecting, or finish their requests.
	}
	switch {
	case g.count < g.enough && !f.IsQueued():
		g.count++
		g.floor = g.count
	case float64(rate) > worth*float64(before):
		// TCP is still increasing its rate.
	case g.without > 0 && (f.IsQueued() || float64(rate) >= worth*float64(g.withoutRate)):
		g.without, g.lastPause = 0, 0
	case g.without > 0 && g.patience > 0:
		g.patience--
	case g.without > 0:
		g.count, g.without = g.without, 0
		g.lastPause = max(8, 2*g.lastPause)
		g.pause = g.lastPause
	case g.pause > 0 && !f.IsQueued():
		g.pause--
	case f.fillsWithoutOne() && g.count > max(g.floor, 1):
		g.enough = g.count
		g.count--
	case !f.IsQueued() && g.count < g.Most:
		g.without, g.withoutRate = g.count, rate
		start := Work{RTT: f.RTT}.slowStart(quantity.Bytes(rate.Over(f.RTT)) / quantity.Bytes(g.count))
		g.patience = int(start / (FewTrips * f.RTT.Seconds()))
		g.count = min(2*g.count, g.Most)
	}
	return g.count
}

// Back tells that an outage of the link has ended, and how many further connections it has
// left. These start again with a small window and grow slowly, so new connections are added.
// anew is true if nothing arrived during the outage. Then the link gets at least as many
// connections as at the start.
func (g *Growth) Back(left int, anew bool) {
	g.without, g.withoutRate, g.pause = g.count, 0, 0
	g.count = min(g.count+left, g.Most)
	if anew {
		g.count = max(g.count, min(startConnections, g.Most))
	}
}

// Lost tells that a connection failed. No new one replaces it.
func (g *Growth) Lost() { g.count = max(g.count-1, 1) }

func (g *Growth) begin(now time.Duration, f Flow) {
	g.begun, g.total = now, f.Total
	g.ends = now + max(leastRound, (FewTrips-1)*f.MinRTT+f.RTT)
}

// fillsWithoutOne reports whether the link stays full without its slowest connection. It
// does if the bytes in flight on the other connections last for at least one round trip
// without a queue.
func (f Flow) fillsWithoutOne() bool {
	others := 1 - float64(f.slowest)/float64(max(f.rate, 1))
	return f.IsQueued() && float64(f.RTT)*others >= float64(f.MinRTT)
}

// IsQueued reports whether packets queue at the link.
func (f Flow) IsQueued() bool {
	return f.RTT-f.MinRTT > max(leastQueue, time.Duration(queued*float64(f.MinRTT)))
}
