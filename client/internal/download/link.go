package download

import (
	"context"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
)

// Link is a way to the server.
type Link struct {
	Name, Device string
	// Bandwidth is B_x; if 0, it is the highest throughput seen.
	Bandwidth quantity.Rate
	// Dial connects to a TCP address through the link.
	Dial func(ctx context.Context, address string) (link.Socket, error)
	// Watch, if set, reports changes of the link until ctx ends.
	Watch func(ctx context.Context, report func(link.Change))
}

// linkState is a link in a download, with all that its connections share.
type linkState struct {
	Link
	// index is the link's place among the links.
	index int
	// connections are those of the link. The first one is there always, and connects
	// again. A further one that fails is removed.
	connections []*connection
	account
	// little says that little is ordered ahead on the link: somebody reads in order
	// what that would hold up, or the link may soon do without its radio.
	little bool
	growing
	// claim is what the link said of the resource and was not believed, and portal
	// says that a captive portal answered.
	claim  claim
	portal bool
	// refused is why the link gets no ranges. It is used again where only a plain GET is
	// left.
	refused error
	// down says that the device has no carrier or is gone, and downSince since
	// when.
	down      bool
	downSince time.Duration
	// spared says that a plan does not use the link now.
	spared bool
}

// account is what came over a link, on whatever connection.
type account struct {
	meter     *throughput.Meter
	requests  int
	failovers int
	wasted    quantity.Bytes
	// raced is the part of wasted that the meter has counted.
	raced quantity.Bytes
	// takesLong says that the server took long to answer the link last, so that to ask
	// for little at a time would cost as long again and again.
	takesLong bool
	// last is when the last byte arrived.
	last time.Duration
}

// growing is what a link that may have several connections knows of their number.
type growing struct {
	// growth decides how many there are; nil where there is one. shown is what making
	// them has shown.
	growth *schedule.Growth
	shown  schedule.Shown
	// together is what all connections deliver.
	together *throughput.Pace
	// away is since when the link cannot be used; 0 if it can.
	away time.Duration
	// answers says that the link, which was away, has its carrier again, or that
	// somebody answers who did not at first; isBack that it was given new connections
	// since, though it may not be usable yet.
	answers, isBack bool
}

// newLink returns a link with its first connection.
func newLink(index int, of Link, window time.Duration) *linkState {
	l := &linkState{Link: of, index: index, account: account{meter: throughput.NewMeter(window)}}
	l.newConnection()
	return l
}

// first is the link's first connection.
func (l *linkState) first() *connection { return l.connections[0] }

// hasSeveral reports whether the link may have several connections.
func (l *linkState) hasSeveral() bool { return l.growth != nil }

// isBusy reports whether a connection of the link has something to deliver.
func (l *linkState) isBusy() bool {
	return slices.ContainsFunc(l.connections, func(c *connection) bool { return len(c.active) > 0 })
}

// isQueued reports whether packets wait at the link, as its connections see it to
// which something comes.
func (l *linkState) isQueued(now time.Duration) bool {
	var flow schedule.Flow
	for _, c := range l.connections {
		if c.hears(now) {
			flow.Add(c.rtt.Last, c.rtt.Min, 0, true)
		}
	}
	return flow.IsQueued()
}

// isFresh reports whether no connection does anything by which the link's rate could
// be known.
func (l *linkState) isFresh() bool {
	return !slices.ContainsFunc(l.connections, func(c *connection) bool { return !c.isFresh() })
}

// slowest is the link's further connections, those first that are given up first.
func (l *linkState) slowest(now time.Duration) []*connection {
	further := slices.Clone(l.connections[1:])
	schedule.GivenUpFirst(further,
		func(c *connection) bool { return c.leaving },
		func(c *connection) quantity.Rate { return c.pace.Rate(now) })
	return further
}

// roundTrip is that of the first connection, or of a further one if that was never
// there.
func (l *linkState) roundTrip() (rtt link.RoundTrip) {
	for _, c := range l.connections {
		if rtt = c.rtt; rtt.Min > 0 {
			break
		}
	}
	return rtt
}

func (l *linkState) summary() rundir.LinkSummary {
	rtt := l.roundTrip()
	return rundir.LinkSummary{
		Device:    l.Device,
		Bytes:     l.meter.Total() - l.raced,
		Finish:    l.last.Nanoseconds(),
		Requests:  l.requests,
		MinRTT:    rtt.Min.Nanoseconds(),
		LastRTT:   rtt.Last.Nanoseconds(),
		Peak:      l.meter.Peak(),
		Wasted:    l.wasted,
		Failovers: l.failovers,
	}
}
