// Package upload sends a file to a server over several links at once: ranges
// of it by PUT with Content-Range (RFC 9110 14.5), or the whole by one link if
// the server does not take those.
package upload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/regularly"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// Options of an upload.
type Options struct {
	URL  *url.URL
	File io.ReaderAt
	Size quantity.Bytes
	// Header is sent with every request; Jar, if set, has cookies for them.
	Header http.Header
	Jar    http.CookieJar
	TLS    *tls.Config
	// Links, Scheduler, Overlap and Window are as for a download.
	Links     []transfer.Link
	Scheduler schedule.Scheduler
	Overlap   float64
	Window    time.Duration
	// Ranged says that the server is known to take ranges: nothing is tried before.
	Ranged bool
	// Verify has the server asked afterwards what it has.
	Verify bool
	// Note says something to the user; it may be nil.
	Note func(string)
	// Rescue makes up for links that fail or fall behind; else the first
	// failure ends the upload, and nobody but the scheduler decides.
	Rescue bool
	// Connections lets links have several connections, with Rescue; nil is one each.
	Connections *transfer.Connections
	// GiveUp is how long no link may get anything to the server.
	GiveUp time.Duration
	// LowestRate is what all must get there together, over GiveUp; 0 is nothing.
	LowestRate quantity.Rate
	// Check is asked when the server has all, and may say why that is not the file;
	// it may be nil.
	Check func() error
	// Recorder gets the events; it may be nil.
	Recorder transfer.Recorder
}

const (
	// mostRequests is how many requests a link of one connection has in flight at a
	// time.
	mostRequests = 4
	// patience is the least time that a server has to confirm what it has got; it is
	// transfer.SilentTrips round trips if these are more.
	patience = time.Second
)

// errWhole says that the server does not take ranges.
var errWhole = errors.New("the server takes no ranges")

// Run sends the file and says what came of it, also if it fails.
func Run(ctx context.Context, o Options) (rundir.Summary, error) {
	u := &upload{Options: o, start: time.Now(), floor: throughput.Floor{Rate: o.LowestRate, Span: o.GiveUp}}
	end, err := u.deliver(ctx)
	summary := rundir.Summary{
		URL: o.URL.Redacted(), Size: o.Size, Outcome: rundir.Complete,
		StartedAt: u.start.UnixNano(), Download: end.Nanoseconds(), Links: map[string]rundir.LinkSummary{},
	}
	u.mu.Lock() // net/http may still read a body whose request has ended.
	for _, l := range u.links {
		summary.Links[l.Name] = l.summary()
	}
	u.mu.Unlock()
	if err != nil {
		err = printable.Error(err)
		summary.Outcome, summary.Error = rundir.Failed, err.Error()
		if ctx.Err() != nil {
			summary.Outcome = rundir.Interrupted
		}
	}
	u.record(&rundir.Done{Outcome: summary.Outcome, Error: summary.Error, Download: end.Nanoseconds()})
	return summary, err
}

// deliver sends the file to where it can go without harm to an older one, has it checked,
// and makes it the target. It returns when all was sent.
func (u *upload) deliver(ctx context.Context) (end time.Duration, err error) {
	for i, l := range u.Links {
		u.links = append(u.links, u.newLink(i, l))
	}
	asker := &asker{upload: u}
	defer asker.close()
	u.to = destination{target: u.URL, ranged: true}
	if !u.Ranged {
		if u.to, err = asker.choose(ctx, u.URL); err != nil {
			return u.now(), err
		}
		asker.close() // It would be idle for long.
	}
	end, err = u.transfer(ctx, asker, !u.to.ranged)
	if u.to.isBeside() {
		if u.to.ranged && errors.As(err, new(*differsError)) {
			end, err = u.transfer(ctx, asker, true) // The older file is still there.
		}
		if err == nil {
			err = asker.replace(ctx, u.stored)
		}
		asker.remove(ctx, u.to.temporary...)
	}
	return end, err
}

// transfer sends the file, and has it checked.
func (u *upload) transfer(ctx context.Context, asker *asker, whole bool) (end time.Duration, err error) {
	err = u.run(ctx, whole)
	if errors.Is(err, errWhole) {
		err = u.run(ctx, true)
	}
	end = u.now()
	if err == nil && u.Check != nil {
		err = u.Check()
	}
	if err == nil && u.Verify {
		err = asker.verify(ctx, u.stored)
	}
	return end, err
}

// upload is one that goes on. All below mu is locked by it.
type upload struct {
	Options
	start time.Time
	// ctx is that of the requests, which end ends.
	ctx context.Context
	end context.CancelCauseFunc
	// whole says that the file goes in one piece.
	whole bool
	// to is where the file goes, and stored where all of it is.
	to     destination
	stored *url.URL
	// kept are the ranges that were confirmed, if the server took them in a trial alone.
	kept []ranges.Range

	mu    sync.Mutex
	links []*linkState
	// free is what nobody sends, and missing what the server has not confirmed.
	free, missing *ranges.Set
	requests      int
	// moved is when last a byte got to the server, as far as is known.
	moved time.Duration
	// got is how much did, and floor the least rate of that.
	got   quantity.Bytes
	floor throughput.Floor
	// refused is when the server began to refuse all that it gets; 0 if it does not.
	refused time.Duration
	running sync.WaitGroup
}

// run sends all. It returns errWhole if the server refuses the first ranges.
func (u *upload) run(ctx context.Context, whole bool) error {
	all := ranges.Range{Length: u.Size}
	u.mu.Lock() // net/http may still read a body of the round before.
	u.whole, u.kept = whole, nil
	u.free, u.missing = ranges.NewSet(all), ranges.NewSet(all)
	u.ctx, u.end = context.WithCancelCause(ctx)
	u.moved = u.now()
	u.floor.Restart(u.moved, u.got)
	for _, l := range u.links {
		l.begin()
		if l.Watch != nil {
			ctx := u.ctx
			u.running.Go(func() {
				l.Watch(ctx, func(c link.Change) {
					u.mu.Lock()
					defer u.mu.Unlock()
					l.changed(c)
				})
			})
		}
	}
	u.mu.Unlock()
	u.supervise()
	u.running.Wait()
	u.mu.Lock() // net/http may still read a body.
	for _, l := range u.links {
		for _, one := range l.connections {
			one.close(transfer.ErrComplete)
		}
	}
	u.mu.Unlock()
	if err := context.Cause(u.ctx); !errors.Is(err, transfer.ErrComplete) {
		return err
	}
	return nil
}

// supervise looks after the links until the end.
func (u *upload) supervise() {
	regularly.Do(u.ctx, transfer.CheckInterval, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		now := u.now()
		for _, l := range u.links {
			l.tend(now)
		}
		if u.GiveUp > 0 && u.now()-u.moved > u.GiveUp {
			u.end(fmt.Errorf("nothing got to the server for %s%s", u.GiveUp, u.problems()))
		}
		if u.floor.IsUnder(now, u.got) {
			u.end(fmt.Errorf("less than %v bit/s got to the server for %s: --lowest-rate says how little is allowed, 0 for anything%s", float64(u.LowestRate), u.GiveUp, u.problems()))
		}
		u.fill()
	})
}

// problems says what is wrong with the links, if anything is.
func (u *upload) problems() string {
	var said []string
	for _, l := range u.links {
		if l.problem != nil {
			said = append(said, l.Name+": "+l.problem.Error())
		}
	}
	if len(said) == 0 {
		return ""
	}
	return ": " + strings.Join(said, "; ")
}

func (u *upload) now() time.Duration { return time.Since(u.start) }

func (u *upload) record(e rundir.Event) {
	if u.Recorder != nil {
		u.Recorder.Record(u.now(), e)
	}
}

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
		r, from, ok := u.next(c, now)
		if !ok {
			break
		}
		u.send(c, r, from, now)
	}
}

// request is a range on its way.
type request struct {
	ranges.Range
	id         int
	to         *url.URL
	connection *connection
	// taken is how much of it the connection has taken.
	taken  quantity.Bytes
	issued time.Duration
	// moved is when it took something last.
	moved time.Duration
	// dropped says that it is not one of the connection's any more.
	dropped bool
	cancel  context.CancelCauseFunc
}

// send begins a request; what comes of it is for finish.
func (u *upload) send(c *connection, r ranges.Range, from string, now time.Duration) {
	l := c.link
	if u.free.Remove(r) > 0 && u.free.Bytes() == 0 {
		u.hurry()
	}
	u.requests++
	ctx, cancel := context.WithCancelCause(u.ctx)
	one := &request{Range: r, id: u.requests, to: u.to.next(u.whole), connection: c, issued: now, moved: now, cancel: cancel}
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

// hurry has all connections send what they have at once.
func (u *upload) hurry() {
	for _, l := range u.links {
		for _, c := range l.connections {
			if c.conn != nil {
				c.sockets.hurry()
			}
		}
	}
}

// target is what a request is about, with what users have sent along.
func (u *upload) target(to *url.URL) transport.Target {
	return transport.Target{URL: to, Header: u.Header, Jar: u.Jar}
}

// as is a question with what users have sent along.
func (u *upload) as(q transport.Question) transport.Question {
	q.Target = u.target(q.Target.URL)
	return q
}

// put makes the request.
func (u *upload) put(ctx context.Context, conn httpConn, one *request) error {
	body := &body{SectionReader: io.NewSectionReader(u.File, int64(one.Offset), int64(one.Length)), request: one, upload: u}
	part := one.Range
	if u.whole {
		part = ranges.Range{}
	}
	code, status, err := conn.Put(ctx, u.target(one.to), body, part, u.Size)
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

// refusal is an answer that is none of success.
type refusal struct {
	code   int
	status string
}

func (r *refusal) Error() string { return "the server answers " + r.said() }

func (r *refusal) said() string { return printable.Quote(r.status) }

// ofRange reports whether it may be the Content-Range that is refused: RFC 9110
// 14.5 asks for 400, others answer 411, 415 or 501.
func (r *refusal) ofRange() bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusLengthRequired, http.StatusUnsupportedMediaType, http.StatusNotImplemented,
	}, r.code)
}

// passes reports whether the same request may do later.
func (r *refusal) passes() bool {
	return slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, r.code)
}

// passesWhole is passes for a file that goes in one piece: the server may still keep it
// locked for a link that broke.
func (r *refusal) passesWhole() bool { return r.passes() || r.code == http.StatusLocked }

// drop ends a request, and lets others have its range.
func (u *upload) drop(one *request, err error) {
	one.dropped = true
	one.connection.active = slices.DeleteFunc(one.connection.active, func(r *request) bool { return r == one })
	one.cancel(err)
	u.giveBack(one)
}

// finish takes note of what came of a request.
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

// confirmed takes note of a range that the server has.
func (c *connection) confirmed(one *request) {
	l, u := c.link, c.link.upload
	c.answered = max(c.answered, one.id)
	news := u.missing.Remove(one.Range)
	if u.to.isBeside() && !u.whole {
		u.kept = append(u.kept, one.Range)
	}
	l.bytes += news
	l.Wasted += one.Length - news
	l.Last, u.moved, u.refused, l.failures, l.problem, l.refusal = u.now(), u.now(), 0, 0, nil, nil
	for _, rival := range u.others(one.Range) {
		u.drop(rival, errTaken)
	}
	if u.missing.Bytes() == 0 {
		u.stored = one.to
		u.end(transfer.ErrComplete)
	}
}

// others are the requests for the same range.
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

// failed decides what follows from the failure of a request.
func (u *upload) failed(c *connection, err error) {
	refused := new(refusal)
	isRefusal := errors.As(err, &refused)
	switch {
	case isRefusal && refused.ofRange() && !u.whole && u.missing.Bytes() == u.Size:
		u.end(errWhole)
	case isRefusal && !refused.passes() && !(u.whole && refused.passesWhole()):
		u.end(refused)
	case u.Rescue && isRefusal && u.refuses():
		u.end(fmt.Errorf("the server has taken nothing for %s: it answers %s", u.GiveUp, refused.said()))
	case u.Rescue && isRefusal:
		c.link.pause(err) // Its connections are in order, and what else they send may be taken.
	default:
		u.broken(c, err)
	}
}

// broken takes note of a connection that failed, or could not be made. Of several
// the others have to do, else the link is left alone for a while.
func (u *upload) broken(c *connection, err error) {
	l := c.link
	switch {
	case c.gone:
	case !u.Rescue:
		u.end(fmt.Errorf("%s: %w", l.Name, err))
	case len(l.connections) > 1:
		if !link.IsCrowded(err) {
			l.Growth.Lost()
		}
		l.remove(c)
	default:
		c.close(err)
		l.pause(err)
	}
	if transfer.IsRefusal(err) {
		l.refusal = err
	}
	if u.isHopeless() {
		for _, other := range u.links {
			other.problem = other.refusal
		}
		u.end(errors.New(strings.TrimPrefix(u.problems(), ": ")))
	}
}

// isHopeless reports whether the server has confirmed nothing, and refuses the
// connections of every link.
func (u *upload) isHopeless() bool {
	return u.missing.Bytes() == u.Size && !slices.ContainsFunc(u.links, func(l *linkState) bool {
		return l.refusal == nil
	})
}

// refuses takes note of a refusal, and reports whether there were only such for so
// long that what is sent again and again would come to nothing.
func (u *upload) refuses() bool {
	if u.refused == 0 {
		u.refused = u.now()
	}
	return u.GiveUp > 0 && u.now()-u.refused > u.GiveUp
}

// giveBack lets others have what a request did not bring, unless somebody has
// sent the same or does.
func (u *upload) giveBack(one *request) {
	if u.missing.Below(one.End()) > u.missing.Below(one.Offset) && len(u.others(one.Range)) == 0 {
		u.free.Add(one.Range)
	}
}

// body is what of the file a request sends.
type body struct {
	*io.SectionReader
	request *request
	upload  *upload
}

// Read hands out bytes as the connection takes them, and has the link's next
// request sent when this one is as far as that needs.
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
		b.request.taken += quantity.Bytes(n)
		b.request.moved = u.now()
		c.link.Meter.Add(b.request.moved, quantity.Bytes(n))
		if !b.request.dropped {
			c.measure(b.request.moved)
			u.supply(c)
		}
	}
	return n, err
}
