package download

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// startAsking asks by HEAD on a session what the URL stands for.
func (a *asker) startAsking(c *connection, s *session) {
	a.asks(c, s)
	c.head = s
	target, again := a.d.target(c), c.link.claim.times > 0
	a.d.wg.Go(func() { a.ask(c, s, target, again) })
}

// isAsked reports whether a connection asks by HEAD on its present session, and the server is not
// late: else another link may get an answer sooner.
func (a *asker) isAsked() bool {
	return slices.ContainsFunc(a.d.connections, func(c *connection) bool {
		return c.head != nil && c.head == c.session && c.head.wait.since == 0
	})
}

// ask learns what the URL stands for. again says that the client did not believe an earlier answer.
func (a *asker) ask(c *connection, s *session, target transport.Target, again bool) {
	sent := time.Since(a.d.start)
	var resource transport.Resource
	var err error
	if a.d.Resource != nil {
		resource = *a.d.Resource
	} else {
		resource, err = learn(a.d.ctx, s.Conn, target, again)
	}

	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	a.hasAnswer(c, s)
	if c.head == s {
		c.head = nil
	}
	a.d.fetcher.answered(c, s, sent, time.Since(a.d.start))
	if a.d.payload != nil || a.d.race != nil || a.d.ctx.Err() != nil {
		return
	}
	if err == nil {
		err = a.learned(c, resource)
	}
	if err != nil {
		a.d.fetcher.trouble(c, s, err)
		return
	}
	a.adopt()
	a.d.assign()
}

// learn asks by HEAD. It asks by GET if the server refuses HEAD or tells no size, or if the client
// did not believe an earlier answer.
func learn(ctx context.Context, s *transport.Conn, target transport.Target, again bool) (transport.Resource, error) {
	ctx = transport.WithProof(ctx, new(transport.Proof)) // To learn the size is no progress.
	if again {
		return s.Peek(ctx, target)
	}
	resource, err := s.Head(ctx, target)
	sizeless := err == nil && resource.Size < 0 && !resource.NoRanges
	if !sizeless && !isRefused(err) {
		return resource, err
	}
	peeked, peekErr := s.Peek(ctx, target)
	if isRefused(peekErr) || sizeless && errors.As(peekErr, new(*transport.MismatchError)) {
		return resource, err
	}
	return peeked, peekErr
}

// isRefused reports whether the server refuses such requests for good.
func isRefused(err error) bool {
	status := new(transport.StatusError)
	return errors.As(err, &status) && !status.Temporary()
}

// learned begins the download of the resource that the server described on connection c.
func (a *asker) learned(c *connection, resource transport.Resource) error {
	if err := a.believe(c.link, resource); err != nil {
		return err
	}
	// Ranges need a validator or a checksum, which proves that they are of one file.
	whole := resource.NoRanges || resource.Size < 0 || !resource.HasValidator() && !a.d.Verified
	have, err := a.d.describe(resource, c.link.Name, whole)
	if err != nil {
		return err
	}
	a.d.origin = origin{link: c.link, url: c.url, server: resource.Server}
	if whole {
		a.d.startRace(nil)
		return nil
	}
	a.d.payload = ranges.NewPayload(a.d.part, have...)
	a.d.completeIfAllArrived(time.Since(a.d.start))
	return nil
}

// asker learns what the URL stands for.
type asker struct {
	d *download
	// openings are the requests for the first bytes that learn it. opened is how many there
	// were.
	openings []*opening
	opened   int
	// noRange says that the server answered an opening with other bytes. The engine sends no
	// more openings then: each might bring the whole file.
	noRange bool
	// whole is the opening that the server answers with the whole file, if there is one.
	whole *opening
	// doubtedAt is when the client first did not believe an answer.
	doubtedAt time.Duration
}

// asks counts a question about the file that was sent on a session.
func (a *asker) asks(c *connection, s *session) {
	if c.asking != s {
		c.asking, c.questions = s, 0
	}
	c.questions++
	c.askedAt = time.Since(a.d.start)
}

// isUnanswered reports whether the server leaves the questions of a link's first connection without an answer for
// long. Another one may get one.
func (a *asker) isUnanswered(c *connection, now time.Duration) bool {
	isAsking := c.isFirst() && c.asking != nil && c.asking == c.session && c.questions < mostUnanswered
	return isAsking && now-c.askedAt >= leastUnanswered<<(c.questions-1)
}

// hasAnswer counts the answer to such a question.
func (a *asker) hasAnswer(c *connection, s *session) {
	if c.asking != s {
		return
	}
	if c.questions--; c.questions == 0 {
		c.asking = nil
	}
}
