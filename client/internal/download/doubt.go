package download

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/transport"
)

// believedAfter is how many answers must agree before the client believes a doubtful one.
// longestDoubt is for how long it waits for links that have not answered.
const (
	believedAfter = 2
	longestDoubt  = 10 * time.Second
)

// claim is an answer that the client does not believe yet.
type claim struct {
	resource transport.Resource
	times    int
}

// says reports whether the claim is of the same resource.
func (c claim) says(r transport.Resource) bool {
	return c.times > 0 && c.resource.Size == r.Size && c.resource.ETag == r.ETag && c.resource.LastModified == r.LastModified
}

// doubtError says why an answer is not believed yet.
type doubtError struct{ error }

// isDoubtful reports whether an answer may be that of a captive portal.
func isDoubtful(err error) bool {
	return errors.As(err, new(doubtError)) || errors.As(err, new(*transport.PortalError))
}

// pageEndings are the ends of names that web pages have.
var pageEndings = []string{"", ".html", ".htm", ".xhtml", ".shtml", ".php", ".asp", ".aspx", ".jsp", ".cgi"}

// NamesPage reports whether a URL may be of a web page.
func NamesPage(u *url.URL) bool {
	return slices.Contains(pageEndings, strings.ToLower(path.Ext(u.Path)))
}

// believe returns an error unless the client can believe a link's answer about the resource. If
// the answer does not fit the bytes of an earlier call, or is a web page under the name of a
// file, all links that answer must give it, at least twice in all.
func (d *download) believe(l *linkState, r transport.Resource) error {
	if d.Resource != nil {
		return nil
	}
	var why string
	switch {
	case d.earlier != nil && !d.earlier.Fits(r):
		why = fmt.Sprintf("the answer (%d bytes, ETag %q, of %q) is not of the file of which an earlier call left a part", r.Size, r.ETag, r.LastModified)
	case r.IsPage && !NamesPage(d.URL):
		why = fmt.Sprintf("the answer is a web page (%d bytes) under the name of a file", r.Size)
	default:
		return nil
	}
	if d.doubtedAt == 0 {
		d.doubtedAt = d.now
	}
	if !l.claim.says(r) {
		l.claim = claim{resource: r}
	}
	l.claim.times++
	agreed, open := 0, false
	for _, other := range d.links {
		switch {
		case other.claim.says(r):
			agreed += other.claim.times
		default:
			open = open || other.claim.times == 0 && other.mayAnswer()
		}
	}
	if agreed >= believedAfter && (!open || d.now-d.doubtedAt > longestDoubt) {
		return nil
	}
	return doubtError{errors.New(printable.Message(why))}
}

// mayAnswer reports whether the link may soon have an answer about the resource.
func (l *linkState) mayAnswer() bool {
	c := l.first()
	return c.out == nil && !l.down && !l.portal && (c.alive() || c.session == nil && c.failures < hopeless)
}

// doubt backs off from a link with a doubtful answer. A new connection to the URL that the user
// gave may reach the server itself.
func (d *download) doubt(c *connection, s *session, err error, now time.Duration) {
	c.link.portal = errors.As(err, new(*transport.PortalError))
	d.note(slog.LevelInfo, "link is left for later", "link", c.link.Name, "error", err)
	if s == c.session {
		d.backOff(c, err, 0, now)
		d.goBack(c)
		d.lose(c, s)
	}
	if d.payload != nil || d.race != nil {
		return
	}
	for _, l := range d.links {
		if first := l.first(); first.out == nil && (first.failures < hopeless || first.session != nil && !l.portal) {
			return
		}
	}
	d.finish(d.problems())
}

// goBack makes the connection ask for the URL that the user gave.
func (d *download) goBack(c *connection) {
	if c.url != d.URL {
		c.url, c.hops = d.URL, 0
	}
}
