package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// fill gives every connection the requests that it may have.
func (u *upload) fill() {
	for _, l := range u.links {
		for _, one := range slices.Clone(l.connections) {
			u.supply(one)
		}
	}
}

// supply gives a connection the requests that it may have.
func (u *upload) supply(c *connection) {
	now := u.now()
	for u.ctx.Err() == nil && c.wants(now) {
		r, from, ok := shares{u}.next(c, now)
		if !ok {
			break
		}
		u.send(c, r, from, now)
	}
}

// request is a PUT in flight.
type request struct {
	ranges.Range
	id         int
	connection *connection
	// taken is how many of its bytes the connection has taken.
	taken  quantity.Bytes
	issued time.Duration
	// moved is when the connection took bytes last.
	moved time.Duration
	// asks says that the request waits for 100 (Continue) before its body.
	asks bool
	// dropped says that the connection gave the request up.
	dropped bool
	cancel  context.CancelCauseFunc
}

// waits reports whether the connection has taken no byte, though the request does not wait for 100 (Continue).
func (r *request) waits() bool { return r.taken == 0 && !r.asks }

// send begins a request, which finish ends.
func (u *upload) send(c *connection, r ranges.Range, from string, now time.Duration) {
	l := c.link
	if u.free.Remove(r) > 0 && u.free.Bytes() == 0 {
		u.hurry()
	}
	u.requests++
	ctx, cancel := context.WithCancelCause(u.ctx)
	one := &request{Range: r, id: u.requests, connection: c, issued: now, moved: now, cancel: cancel, asks: u.asks()}
	c.active = append(c.active, one)
	l.Requests++
	l.Meter.Start(now)
	c.pace.Begin(now, c.leastRTT)
	l.Together.Begin(now, c.leastRTT)
	u.record(&rundir.Request{
		Link: l.Name, ID: one.id, Offset: int64(r.Offset), Length: int64(r.Length),
		Rate: float64(l.Meter.Rate(now)), From: from,
	})
	conn := c.conn
	u.running.Go(func() {
		err := u.put(ctx, conn, one)
		cancel(nil)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.finish(one, err)
	})
}

// hurry makes all connections send their bytes at once.
func (u *upload) hurry() {
	for _, l := range u.links {
		for _, c := range l.connections {
			if c.conn != nil {
				c.sockets.hurry()
			}
		}
	}
}

// put makes the request.
func (u *upload) put(ctx context.Context, conn httpConn, one *request) error {
	body := &body{SectionReader: io.NewSectionReader(u.File, int64(one.Offset), int64(one.Length)), request: one, upload: u}
	part := one.Range
	if u.whole {
		part = ranges.Range{}
	}
	code, status, err := conn.Put(ctx, transport.Target{URL: u.URL, Header: u.Header}, body, part, u.Size, one.asks)
	switch {
	case err == nil && code == http.StatusExpectationFailed:
		u.isAsked.Store(true)
		return errExpectation
	case code > 0:
		u.isAsked.Store(true)
	}
	switch {
	case err == nil && code >= 200 && code < 300:
		return nil
	case err == nil:
		return &refusal{code, status}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// drop ends a request and makes its range free.
func (u *upload) drop(one *request, err error) {
	one.dropped = true
	one.connection.active = slices.DeleteFunc(one.connection.active, func(r *request) bool { return r == one })
	one.cancel(err)
	u.giveBack(one)
}

// finish decides what follows from the end of a request.
func (u *upload) finish(one *request, err error) {
	c, l := one.connection, one.connection.link
	c.active = slices.DeleteFunc(c.active, func(r *request) bool { return r == one })
	if !one.dropped {
		c.measure(u.now())
	}
	end := &rundir.End{Link: l.Name, ID: one.id, Bytes: int64(one.Length), Outcome: rundir.Complete}
	switch {
	case u.ctx.Err() != nil && err != nil:
		end.Outcome, end.Bytes = rundir.Cancelled, int64(one.taken)
	case err == nil:
		c.confirmed(one)
	case errors.Is(err, errTaken):
		end.Outcome, end.Bytes, end.Wasted = rundir.Cancelled, 0, int64(one.taken)
		l.Wasted += one.taken
	default:
		end.Outcome, end.Bytes, end.Error, end.Wasted = rundir.Failed, 0, printable.Message(err.Error()), int64(one.taken)
		l.Wasted += one.taken
		if !one.dropped {
			u.giveBack(one)
			u.failed(c, err)
		}
	}
	u.record(end)
	u.fill()
}

// errTaken ends a request whose range another link has brought.
var errTaken = errors.New("another link has sent it")

// confirmed notes a range that the server has confirmed.
func (c *connection) confirmed(one *request) {
	l, u := c.link, c.link.upload
	c.answered, c.stuck = max(c.answered, one.id), 0
	news := u.missing.Remove(one.Range)
	l.bytes += news
	l.Wasted += one.Length - news
	l.Last, u.refused, l.failures, l.problem, l.refusal = u.now(), 0, 0, nil, nil
	u.balance.Came(news, u.now())
	for _, rival := range u.others(one.Range) {
		u.drop(rival, errTaken)
	}
	if u.missing.Bytes() == 0 {
		u.end(transfer.ErrComplete)
	}
}

// others are the other requests with bytes of the same range.
func (u *upload) others(r ranges.Range) (all []*request) {
	for _, l := range u.links {
		for _, c := range l.connections {
			for _, one := range c.active {
				if one.Range == r {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// giveBack makes the range of a failed request free, unless another request has sent the same or
// sends it.
func (u *upload) giveBack(one *request) {
	if u.missing.Below(one.End()) > u.missing.Below(one.Offset) && len(u.others(one.Range)) == 0 {
		u.free.Add(one.Range)
	}
}

// asks reports whether a request waits for 100 (Continue) before its body. A file in one piece does, until
// the server has answered such a request: a refusal costs nothing then.
func (u *upload) asks() bool { return u.whole && u.Size >= leastAsked && !u.isAsked.Load() }

// leastAsked is the least size of such a file, in bytes. Most of a smaller one is sent before an answer.
const leastAsked quantity.Bytes = 1 << 20

// errExpectation ends a request that is repeated without waiting for 100 (Continue).
var errExpectation = errors.New("the server does not answer Expect (417)")

// hands counts bytes that a connection takes. It ends an upload that sends the same bytes again and again.
func (u *upload) hands(one *request, bytes quantity.Bytes) {
	fresh := u.balance.Sent(ranges.Range{Offset: one.Offset + one.taken, Length: bytes})
	if !one.dropped {
		one.connection.fresh += fresh
	}
	if fresh > 0 {
		return
	}
	if sent, new, tooMuch := u.balance.IsOver(0); tooMuch {
		u.end(fmt.Errorf("the server takes the same bytes again and again: %d bytes were sent, of which only %d were new%s", int64(sent), int64(new), u.problems()))
	}
}

// body is the part of the file that a request sends.
type body struct {
	*io.SectionReader
	request *request
	upload  *upload
}

// Read hands out bytes as the connection takes them. It sends the connection's next request when enough of
// this one is taken.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.SectionReader.Read(p)
	u, c := b.upload, b.request.connection
	u.mu.Lock()
	defer u.mu.Unlock()
	if at, _ := b.Seek(0, io.SeekCurrent); err == io.EOF && at < b.Size() {
		err = errors.New("the file has become shorter")
	}
	if err != nil && err != io.EOF {
		u.end(err)
	}
	if n > 0 {
		b.request.moved = u.now()
		u.hands(b.request, quantity.Bytes(n))
		b.request.taken += quantity.Bytes(n)
		c.link.Meter.Add(b.request.moved, quantity.Bytes(n))
		if !b.request.dropped {
			c.measure(b.request.moved)
			u.supply(c)
		}
	}
	return n, err
}
