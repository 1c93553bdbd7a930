package download

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// This file decides what to do if a server does not serve ranges as it should, or if servers
// behind one name have different versions of a file. As a last resort one link downloads the
// whole file (race.go), which every server serves.

// mostDiffering is how many answers in a row with another validator show that the file changed.
const mostDiffering = 8

// origin is the link, URL and server of the first answer.
type origin struct {
	link *linkState
	url  *url.URL
	// server is the address of the server; empty if it is not known.
	server string
	// isPinned says that all links request from that server.
	isPinned bool
}

// differs decides what follows from an answer of the right size with another validator. All links
// go to the origin's server. If that server itself gives different validators, one link downloads
// the whole file.
func (rf *refusals) differs(c *connection, s *session, err *transport.MismatchError, now time.Duration) {
	elsewhere := err.Server != rf.d.origin.server || c.url.String() != rf.d.origin.url.String()
	known := err.Server != "" && rf.d.origin.server != ""
	switch {
	case rf.d.race != nil && c.failures < mostDiffering:
		// The next server to answer may have the right file.
		c.failures++
		rf.pause(c, err, transfer.LeastBackoff, now)
	case rf.d.race != nil:
		rf.exclude(c, err)
	case known && elsewhere:
		if !rf.d.origin.isPinned {
			rf.d.origin.isPinned = true
			rf.d.Log.Warn("servers of the file differ: all links use the one that began", "server", rf.d.origin.server, "link", c.link.Name, "error", err)
		}
		c.url = rf.d.origin.url
		rf.d.closer.lose(c, s)
	case c.link != rf.d.origin.link && rf.d.origin.link.first().out == nil:
		// The link reaches another server at the same address.
		rf.refuse(c.link, err)
	default:
		rf.startAnew(err)
	}
}

// startAnew downloads the whole file from any server. The bytes that were written are worth
// nothing then. If the sink cannot take them back, only an answer with the same validator fits.
func (rf *refusals) startAnew(why error) {
	rf.d.origin.isPinned = false
	_, restarts := rf.d.sink.(Restarter)
	if restarts = restarts && rf.d.Resource == nil; restarts {
		rf.d.resource = transport.Resource{Size: rf.d.resource.Size}
		rf.d.resumed = 0
		for _, l := range rf.d.links {
			l.Wasted, l.raced = l.Wasted+l.Meter.Total()-l.raced, l.Meter.Total()
		}
	}
	rf.d.startRace(why)
	rf.d.race.restarts = restarts
}

// refuse requests no more ranges over a link. If no link gets ranges, one sends a plain GET.
func (rf *refusals) refuse(l *linkState, err error) {
	now := time.Since(rf.d.start)
	first := l.first()
	l.refused = err
	for _, other := range l.connections[1:] {
		rf.d.closer.remove(other, now)
	}
	rf.d.closer.abandon(first, slices.Clone(first.active), excluded, now)
	if rf.d.hasRanges() {
		rf.d.Log.Warn("link is not used any more", "link", l.Name, "error", err)
		return
	}
	rf.d.startRace(err)
}

// hasRanges reports whether a link may still get ranges.
func (d *download) hasRanges() bool {
	return slices.ContainsFunc(d.connections, func(c *connection) bool { return c.out == nil && c.link.refused == nil })
}

// countUnranged counts an answer without a range. After mostWhole of these for each link, a link
// sends a plain GET, if no new bytes arrived for the time least.
func (rf *refusals) countUnranged(err error, least, now time.Duration) {
	rf.d.unranged++
	links := 0
	for _, l := range rf.d.links {
		if l.first().out == nil && l.refused == nil {
			links++
		}
	}
	if rf.d.payload != nil && now-rf.d.balance.Moved >= least && rf.d.unranged >= mostWhole*links {
		rf.d.startRace(err)
	}
}

// isNoRange reports whether a refusal may be because of the range. A busy server may refuse many
// of a link's connections: it answers 503 after it has served ranges.
func (rf *refusals) isNoRange(c *connection, status *transport.StatusError) bool {
	isBusy := rf.d.ranged && status.Code == http.StatusServiceUnavailable
	return c.isFirst() && status.RetryAfter == 0 && transport.RefusesRanges(status.Code) && !isBusy
}

// unrangedPatience is how long no new bytes may arrive before temporary errors of the server make
// a link send a plain GET.
const unrangedPatience = time.Second

// dialed is the address to which a connection for a URL is made.
func (o *origin) dialed(u *url.URL) string {
	if o.isPinned && u == o.url {
		return o.server
	}
	return transport.Address(u)
}

// reaches reports whether a connection of the pool leads to the server that dialed names.
func (o *origin) reaches(u *url.URL, conn *transport.Conn) bool {
	return !o.isPinned || u != o.url || conn.Socket.RemoteAddr().String() == o.server
}
