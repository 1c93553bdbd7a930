package download

import (
	"log/slog"
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

// differs decides what follows from an answer of the right size with another validator. All links go to the origin's
// server. If that server itself gives different validators, one link downloads the whole file.
func (d *download) differs(c *connection, s *session, err *transport.MismatchError, now time.Duration) {
	elsewhere := err.Server != d.origin.server || c.url.String() != d.origin.url.String()
	known := err.Server != "" && d.origin.server != ""
	switch {
	case d.race != nil && c.failures < mostDiffering:
		// The next server to answer may have the right file.
		c.failures++
		d.pause(c, err, transfer.LeastBackoff, now)
	case d.race != nil:
		d.exclude(c, err)
	case known && elsewhere:
		if !d.origin.isPinned {
			d.origin.isPinned = true
			d.note(slog.LevelWarn, "servers of the file differ: all links use the one that began", "server", d.origin.server, "link", c.link.Name, "error", err)
		}
		c.url = d.origin.url
		d.lose(c, s)
	case c.link != d.origin.link && d.origin.link.first().out == nil:
		// The link reaches another server at the same address.
		d.refuse(c.link, err)
	default:
		d.startAnew(err)
	}
}

// startAnew downloads the whole file from any server. The bytes that were written are worth
// nothing then. If the sink cannot take them back, only an answer with the same validator fits.
func (d *download) startAnew(why error) {
	d.origin.isPinned = false
	_, restarts := d.sink.(Restarter)
	if restarts = restarts && d.Resource == nil; restarts {
		d.resource = transport.Resource{Size: d.resource.Size}
		d.resumed = 0
		for _, l := range d.links {
			l.Wasted, l.raced = l.Wasted+l.Meter.Total()-l.raced, l.Meter.Total()
		}
	}
	d.startRace(why)
	d.race.restarts = restarts
}

// refuse requests no more ranges over a link. If no link gets ranges, one sends a plain GET.
func (d *download) refuse(l *linkState, err error) {
	now := d.now
	first := l.first()
	l.refused = err
	for _, other := range l.connections[1:] {
		d.remove(other, now)
	}
	d.abandon(first, slices.Clone(first.active), excluded, now)
	if d.hasRanges() {
		d.note(slog.LevelWarn, "link is not used any more", "link", l.Name, "error", err)
		return
	}
	d.startRace(err)
}

// hasRanges reports whether a link may still get ranges.
func (d *download) hasRanges() bool {
	return slices.ContainsFunc(d.connections, func(c *connection) bool { return c.out == nil && c.link.refused == nil })
}

// countUnranged counts an answer without a range. After mostWhole of these for each link, a link
// sends a plain GET, if no new bytes arrived for the time least.
func (d *download) countUnranged(err error, least, now time.Duration) {
	d.unranged++
	links := 0
	for _, l := range d.links {
		if l.first().out == nil && l.refused == nil {
			links++
		}
	}
	if d.payload != nil && now-d.balance.Moved >= least && d.unranged >= mostWhole*links {
		d.startRace(err)
	}
}

// isNoRange reports whether a refusal may be because of the range. A busy server may refuse many
// of a link's connections: it answers 503 after it has served ranges.
func (d *download) isNoRange(c *connection, status *transport.StatusError) bool {
	isBusy := d.ranged && status.Code == http.StatusServiceUnavailable
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
