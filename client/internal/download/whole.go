package download

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// What is done where a server does not serve ranges as it should, or servers behind
// one name say different things of one file. In the end the file comes as a whole by one
// link (race.go), which is what all servers serve.

// mostDiffering is how many answers in a row a link may get of another file until it
// is believed that the file changed.
const mostDiffering = 8

// origin is where the download began.
type origin struct {
	link *linkState
	url  *url.URL
	// server is the address that answered; empty if it is not known.
	server string
	// isPinned says that all links ask there.
	isPinned bool
}

// differs decides what follows from an answer of the right size with another
// validator. All links go to the server that the download began with; if that itself
// says different things, the file comes as a whole.
func (rf *refusals) differs(c *connection, s *session, err *transport.MismatchError, now time.Duration) {
	elsewhere := err.Server != rf.d.origin.server || c.url.String() != rf.d.origin.url.String()
	known := err.Server != "" && rf.d.origin.server != ""
	switch {
	case rf.d.race != nil && c.failures < mostDiffering:
		// The next one to answer may be the right one.
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
		// The same address, and somebody else there.
		rf.refuse(c.link, err)
	default:
		rf.startAnew(err)
	}
}

// startAnew requests the file as a whole, from whatever server. What was written is
// worth nothing then. Where it cannot be taken back, only the same validator will do.
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

// refuse leaves a link alone that gets no ranges. If none gets any, a plain GET is
// tried.
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

// countUnranged counts an answer that brings no range, and tries a plain GET where links get
// such again and again, over whatever connection and whatever else goes wrong between,
// and for so long nothing has come.
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

// isNoRange reports whether a refusal may be one of ranges. Many of a link's connections
// may get one of a server that is busy, which says 503 where it served ranges before.
func (rf *refusals) isNoRange(c *connection, status *transport.StatusError) bool {
	isBusy := rf.d.ranged && status.Code == http.StatusServiceUnavailable
	return c.isFirst() && status.RetryAfter == 0 && transport.RefusesRanges(status.Code) && !isBusy
}

// unrangedPatience is how long nothing must have come where servers answer with errors, which
// may pass, until a plain GET is tried.
const unrangedPatience = time.Second

// dialed is the address to connect to for a URL.
func (o *origin) dialed(u *url.URL) string {
	if o.isPinned && u == o.url {
		return o.server
	}
	return transport.Address(u)
}

// reaches reports whether a connection that was kept leads where the download goes.
func (o *origin) reaches(u *url.URL, conn *transport.Conn) bool {
	return !o.isPinned || u != o.url || conn.Socket.RemoteAddr().String() == o.server
}
