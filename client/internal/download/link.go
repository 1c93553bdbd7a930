package download

import (
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// linkState is a link in a download: what its connections share.
type linkState struct {
	commonLink
	// connections are the link's. The first one always exists, and connects again when it
	// fails. A further one that fails is removed.
	connections []*connection
	transfer.Growing
	// raced is how many of the wasted bytes the meter has counted.
	raced quantity.Bytes
	// isSlowToAnswer says that the server took long for its last answer. Many small requests would each take as long.
	isSlowToAnswer bool
	// shortQueue keeps few bytes in flight on the link. A program reads the file in order, which
	// a long queue would delay, or a plan may soon let the link's radio sleep.
	shortQueue bool
	// claim is the link's answer about the resource that the client does not believe yet.
	// portal says that a captive portal answered.
	claim  claim
	portal bool
	// refused is why the link gets no ranges. A plain GET may use the link again.
	refused error
	// isSpent says that the server refuses the link's further requests, as for a URL that works
	// once, while an earlier answer goes on.
	isSpent bool
	// down says that the device has no carrier or is gone, since downSince.
	down      bool
	downSince time.Duration
	// away is since when a link with several connections cannot be used; 0 if it can be. answers says that the link has its
	// carrier again, or that the server answers again. isBack says that the link got new connections since, though it may
	// not be usable yet.
	away            time.Duration
	answers, isBack bool
}

// newLink returns a link with its first connection, to a URL.
func newLink(of commonLink, u *url.URL) *linkState {
	l := &linkState{commonLink: of, Growing: transfer.Growing{Together: throughput.NewPace(schedule.PaceWindow)}}
	l.connections = []*connection{{link: l, commonConnection: newConnection(u)}}
	return l
}

func (l *linkState) first() *connection { return l.connections[0] }

// hasOnly reports whether no other connection of the link is connected.
func (l *linkState) hasOnly(c *connection) bool {
	return !slices.ContainsFunc(l.connections, func(other *connection) bool { return other != c && other.session != nil })
}

func (l *linkState) isBusy() bool {
	return slices.ContainsFunc(l.connections, func(c *connection) bool { return len(c.active) > 0 })
}

// isLate reports whether the server answers no request of the link for long, while it is there.
func (l *linkState) isLate() bool {
	return l.isBusy() && !slices.ContainsFunc(l.connections, func(c *connection) bool { return c.session != nil && !c.awaitsAll() })
}

// isQueued reports whether packets queue at the link, by the round trips of its connections that hear answers.
func (l *linkState) isQueued(now time.Duration) bool {
	var flow schedule.Flow
	for _, c := range l.connections {
		if c.hears(now) {
			flow.Add(c.rtt.Last, c.rtt.Min, 0, true)
		}
	}
	return flow.IsQueued()
}

// isFresh reports whether no connection brings bytes by which the client could know the link's rate.
func (l *linkState) isFresh() bool {
	return !slices.ContainsFunc(l.connections, func(c *connection) bool { return !c.isFresh() })
}

func (l *linkState) surplus(count int, now time.Duration) []*connection {
	return transfer.Surplus(l.connections, count,
		func(c *connection) bool { return c.leaving },
		func(c *connection) *throughput.Pace { return c.pace }, now)
}

// roundTrip is that of the first connection that was ever connected.
func (l *linkState) roundTrip() (rtt link.RoundTrip) {
	for _, c := range l.connections {
		if rtt = c.rtt; rtt.Min > 0 {
			break
		}
	}
	return rtt
}
