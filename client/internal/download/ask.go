package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// startAsking asks by HEAD on a session what the URL stands for.
func (d *download) startAsking(c *connection, s *session) {
	d.asks(c, s)
	c.head = s
	d.do(&question{d: d, c: c, s: s, target: d.target(c), again: c.link.claim.times > 0, sent: d.now})
}

// isAsked reports whether a connection asks by HEAD on its present session, and the server is not
// late: else another link may get an answer sooner.
func (d *download) isAsked() bool {
	return slices.ContainsFunc(d.connections, func(c *connection) bool {
		return c.head != nil && c.head == c.session && c.head.wait.since == 0
	})
}

// question asks by HEAD what the URL stands for. It is an action, and the answer is an event.
type question struct {
	d      *download
	c      *connection
	s      *session
	target transport.Target
	// again says that the client did not believe an earlier answer.
	again    bool
	sent     time.Duration
	resource transport.Resource
	err      error
}

func (q *question) step(d *download) {
	d.hasAnswer(q.c, q.s)
	if q.c.head == q.s {
		q.c.head = nil
	}
	d.answered(q.c, q.s, q.sent, d.now)
	switch {
	case d.payload != nil || d.race != nil || d.isOver:
	case q.err != nil:
		d.trouble(q.c, q.s, q.err)
	default:
		d.learned(&learned{d: d, c: q.c, s: q.s, resource: q.resource})
	}
}

// learned is what the URL stands for, as the server told on a connection's session. It makes the sink begin with the
// resource, as an action. What the sink has already is an event.
type learned struct {
	d        *download
	c        *connection
	s        *session
	resource transport.Resource
	// opened is the opening that was answered; nil for an answer to HEAD.
	opened *opening
	// isWhole says that the server sends the resource only as a whole, or proves no range.
	isWhole bool
	have    []ranges.Range
	err     error
}

// learned begins the download of a resource, if the client believes the answer. It reports whether it does.
func (d *download) learned(l *learned) bool {
	if l.err = d.believe(l.c.link, l.resource); l.err == nil {
		// Ranges need a validator or a checksum, which proves that they are of one file.
		l.isWhole = l.resource.NoRanges || l.resource.Size < 0 || !l.resource.HasValidator() && !d.Verified
		l.err = d.describe(l.resource)
	}
	if l.err != nil {
		d.notLearned(l)
		return false
	}
	d.do(l)
	return true
}

func (l *learned) step(d *download) {
	defer d.settle(l.c, l.s)
	l.err = d.sinkBegan(l.have, l.err, l.c.link.Name, l.isWhole, d.now)
	if l.err != nil {
		d.notLearned(l)
		return
	}
	d.origin = origin{link: l.c.link, url: l.c.url, server: l.resource.Server}
	if l.isWhole {
		d.startRace(nil)
	} else {
		d.payload = ranges.NewPayload(d.part, l.have...)
		d.completeIfAllArrived(d.now)
	}
	if l.opened != nil {
		// The server has answered a second request, if the first one asks for the whole file.
		d.repeats = d.repeats || !l.opened.isWhole
	}
	d.adopt()
	if l.opened != nil {
		d.lead(l.opened)
		d.goOn()
	}
	d.assign()
	if l.opened != nil {
		d.fillStart()
	}
}

// notLearned decides what follows from an answer that the client does not believe, or that the sink refuses.
func (d *download) notLearned(l *learned) {
	if l.opened != nil {
		d.wholeOpening = nil
		d.forget(l.opened)
	}
	d.trouble(l.c, l.s, l.err)
}

// asks counts a question about the file that was sent on a session.
func (d *download) asks(c *connection, s *session) {
	if c.asking != s {
		c.asking, c.questions = s, 0
	}
	c.questions++
	c.askedAt = d.now
}

// isQuestionUnanswered reports whether the server leaves the questions of a link's first connection without an answer for
// long. Another one may get one.
func (d *download) isQuestionUnanswered(c *connection, now time.Duration) bool {
	isAsking := c.isFirst() && c.asking != nil && c.asking == c.session && c.questions < mostUnanswered
	return isAsking && now-c.askedAt >= leastUnanswered<<(c.questions-1)
}

// hasAnswer takes note of an answer to such a question. Others on the session may have none yet.
func (d *download) hasAnswer(c *connection, s *session) {
	if c.asking == s {
		c.asking = nil
	}
}
