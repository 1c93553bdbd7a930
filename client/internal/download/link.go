package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// linkState is a link in a download, with all that its connections share.
type linkState struct {
	transfer.Link
	// index is the link's place among the links.
	index int
	// connections are those of the link. The first one is there always, and connects
	// again. A further one that fails is removed.
	connections []*connection
	transfer.Account
	transfer.Growing
	absence
	failovers int
	// raced is the part of the wasted bytes that the meter has counted.
	raced quantity.Bytes
	// isSlowToAnswer says that the server took long to answer the link last, so that to ask
	// for little at a time would cost as long again and again.
	isSlowToAnswer bool
	// shortQueue keeps what is ordered ahead on the link small: somebody reads in order
	// what that would hold up, or the link may soon do without its radio.
	shortQueue bool
	// claim is what the link said of the resource and was not believed, and portal
	// says that a captive portal answered.
	claim  claim
	portal bool
	// refused is why the link gets no ranges. It is used again where only a plain GET is
	// left.
	refused error
	// isSpent says that the server refuses further requests of the link, as of a URL that works once, while an
	// earlier answer goes on.
	isSpent bool
	// down says that the device has no carrier or is gone, and downSince since
	// when.
	down      bool
	downSince time.Duration
	// spared says that a plan does not use the link now.
	spared bool
}

// absence is whether a link with several connections can be used.
type absence struct {
	// away is since when it cannot be used; 0 if it can.
	away time.Duration
	// answers says that the link, which was away, has its carrier again, or that
	// somebody answers who did not at first; isBack that it was given new connections
	// since, though it may not be usable yet.
	answers, isBack bool
}

// newLink returns a link with its first connection.
func newLink(index int, of transfer.Link, window time.Duration) *linkState {
	l := &linkState{Link: of, index: index, Account: transfer.NewAccount(window)}
	l.newConnection()
	return l
}

// first is the link's first connection.
func (l *linkState) first() *connection { return l.connections[0] }

// hasOnly reports whether no connection of the link is connected but this one.
func (l *linkState) hasOnly(c *connection) bool {
	return !slices.ContainsFunc(l.connections, func(other *connection) bool { return other != c && other.session != nil })
}

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

// surplus is which connections are too many for the count.
func (l *linkState) surplus(count int, now time.Duration) []*connection {
	return transfer.Surplus(l.connections, count,
		func(c *connection) bool { return c.leaving },
		func(c *connection) *throughput.Pace { return c.pace }, now)
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
	summary := l.Summary(l.Device, l.Meter.Total()-l.raced, rtt.Min, rtt.Last)
	summary.Failovers = l.failovers
	return summary
}
