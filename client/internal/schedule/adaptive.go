package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Adaptive keeps every connection at work with little ordered ahead, so that
// little has to be taken back when a link changes: what was never ordered needs
// no cancelling. How many connections a link has is for Growth; what the
// connections do at the end is for Share and Steal.
type Adaptive struct{}

// OpeningOrder is what each connection asks for before the size is known, in
// bytes: more than TCP's slow start brings in the round trip until the next order
// is there, by all that a link begins with. A slow link has it to bring alone.
const OpeningOrder = 2 * MinimumRequest

// FirstOrder is the least that is ordered later, in bytes.
const FirstOrder = 4 * MinimumRequest

// orderTime is how much of its work a connection orders at a time. Requests of
// that length cost a thousandth in headers where a link is slow, and less where
// it is not; what is on its way is more where the round trip takes longer.
const orderTime = 250 * time.Millisecond

// MostOrder is the most that a connection orders after so much has arrived.
// Its rate is measured badly at first, and TCP at most doubles it in a round
// trip.
func MostOrder(arrived quantity.Bytes) quantity.Bytes { return FirstOrder + 2*arrived }

// StartRoom is what each of a link's connections can bring in slow start before
// what it orders next comes: two round trips of its part of what the link carries
// at most. Without bound if that is not known.
func StartRoom(most quantity.Rate, connections int, trip time.Duration) quantity.Bytes {
	if most == 0 {
		return math.MaxInt64
	}
	return max(quantity.Bytes((2*most).Over(trip))/quantity.Bytes(connections), MinimumRequest)
}

// Next returns what the connection delivers in orderTime, and at first no more
// than the opening. A slow one is not asked for more than MinimumRequest of what
// somebody reads in order: others would take it over before it came, again and again.
func (Adaptive) Next(x int, known Known) quantity.Bytes {
	l := known.Links[x]
	if l.Requests > 0 && l.Arrived == 0 {
		return OpeningOrder
	}
	size := quantity.Bytes(l.Pace.Over(orderTime))
	if known.InOrder && l.Arrived > 0 && size <= MinimumRequest {
		return MinimumRequest
	}
	return max(min(size, MostOrder(l.Arrived)), FirstOrder)
}

// Growth decides how many connections a link has. A link on which no queue has
// formed is not full: its connections are held back by random loss, by small
// windows or by a long way, and another one brings more. So their number is
// doubled for as long as no queue forms and the link has become faster by it,
// and is put back where it has not, once the new ones have had their slow start.
// Where a queue stands, one after the other is given up, for as long as it stays:
// they brought nothing, and take from others who share the link. Their rates say
// less: behind a lost packet nothing comes for as long as the queue is. A link
// whose queue is gone gets the last one back.
type Growth struct {
	// Most is how many connections the link may have.
	Most int

	// ends is when the present round ends, and total what had arrived when it
	// began.
	begun, ends time.Duration
	total       quantity.Bytes
	// rate is that of the round before.
	rate quantity.Rate
	// count is how many connections are wanted; without is how many there were
	// before they were made more, withoutRate what those delivered, and patience
	// how many rounds more the others may still be in slow start.
	count, without, patience int
	withoutRate              quantity.Rate
	// rest is how many rounds without a queue nothing is tried, and rests how many
	// the next time that more brought nothing.
	rest, rests int
	// enough is how many there were with a queue before the last one was given
	// up. floor is how many the link was seen to need.
	enough, floor int
}

// Flow is what a link's connections do.
type Flow struct {
	// Total is what has arrived on all, and Connections how many deliver.
	Total       quantity.Bytes
	Connections int
	// RTT is the round trip time with queues, as the connection sees it whose
	// queue is shortest, and MinRTT that without.
	RTT, MinRTT time.Duration
	// Busy says that they have always had work.
	Busy bool

	// rate is what all deliver; slowest is what the slowest of those does that
	// can be given up.
	rate, slowest quantity.Rate
}

// Add takes another connection into account: its round trip times, and what it
// delivers. A link's first is never given up.
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

// A round is how long the flow is watched for a decision: TCP needs
// roundTrips, one of them through the queue, for a new connection to show what it
// brings, and arrivals come in batches.
const (
	roundTrips = 4
	leastRound = 150 * time.Millisecond
)

const (
	// worth is how much faster a link must be by twice the connections.
	worth = 1.1
	// steady is how much a link that is still becoming faster does in a round.
	steady = 1.15
	// queued is the part of the round trip by which a queue shows; below
	// leastQueue it may be chance.
	queued     = 0.25
	leastQueue = 5 * time.Millisecond
)

// startConnections is how many connections a link begins with, as many as a
// browser opens to a server that speaks HTTP/1.1: its slow start is as much
// shorter, which is most of what a small file takes.
const startConnections = 6

// Connections is how many the link is to have.
func (g *Growth) Connections() int { return max(g.count, 1) }

// Begin returns how many connections the link has at first.
func (g *Growth) Begin() int {
	g.count = min(startConnections, g.Most)
	return g.count
}

// Count returns how many connections the link should have at now.
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
		return g.count // Some are still being made, or do what they have to.
	}
	switch {
	case g.count < g.enough && !f.IsQueued():
		g.count++
		g.floor = g.count
	case float64(rate) > steady*float64(before):
		// TCP is still finding out.
	case g.without > 0 && (f.IsQueued() || float64(rate) >= worth*float64(g.withoutRate)):
		g.without, g.rests = 0, 0
	case g.without > 0 && g.patience > 0:
		g.patience--
	case g.without > 0:
		g.count, g.without = g.without, 0
		g.rests = max(8, 2*g.rests)
		g.rest = g.rests
	case g.rest > 0 && !f.IsQueued():
		g.rest--
	case f.fillsWithoutOne() && g.count > max(g.floor, 1):
		g.enough = g.count
		g.count--
	case !f.IsQueued() && g.count < g.Most:
		g.without, g.withoutRate = g.count, rate
		start := Work{RTT: f.RTT}.slowStart(quantity.Bytes(rate.Over(f.RTT)) / quantity.Bytes(g.count))
		g.patience = int(start / (roundTrips * f.RTT.Seconds()))
		g.count = min(2*g.count, g.Most)
	}
	return g.count
}

// Back says that the link was away, of whose connections as many further ones are
// left. They begin anew with a small window, and grow slowly; so new ones come
// to them. If nothing came through meanwhile, the link begins anew itself, with no
// fewer than at the start.
func (g *Growth) Back(left int, anew bool) {
	g.without, g.withoutRate, g.rest = g.count, 0, 0
	g.count = min(g.count+left, g.Most)
	if anew {
		g.count = max(g.count, min(startConnections, g.Most))
	}
}

// Lost says that a connection failed: the others have to do.
func (g *Growth) Lost() { g.count = max(g.count-1, 1) }

// GivenUpFirst puts a link's further connections, of which the newest is last, into the
// order in which they are given up: those that are leaving already, then those that
// deliver least, the newest first.
func GivenUpFirst[C any](further []C, isLeaving func(C) bool, rate func(C) quantity.Rate) {
	slices.Reverse(further)
	rank := func(c C) quantity.Rate {
		if isLeaving(c) {
			return -1
		}
		return rate(c)
	}
	slices.SortStableFunc(further, func(a, b C) int { return cmp.Compare(rank(a), rank(b)) })
}

func (g *Growth) begin(now time.Duration, f Flow) {
	g.begun, g.total = now, f.Total
	g.ends = now + max(leastRound, (roundTrips-1)*f.MinRTT+f.RTT)
}

// fillsWithoutOne reports whether the link stays full if its slowest connection
// goes: what is on its way on the others, by what they deliver, lasts for longer
// than the round trip takes without a queue.
func (f Flow) fillsWithoutOne() bool {
	others := 1 - float64(f.slowest)/float64(max(f.rate, 1))
	return f.IsQueued() && float64(f.RTT)*others >= float64(f.MinRTT)
}

// IsQueued reports whether packets wait at the link.
func (f Flow) IsQueued() bool {
	return f.RTT-f.MinRTT > max(leastQueue, time.Duration(queued*float64(f.MinRTT)))
}
