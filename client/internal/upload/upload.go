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

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/regularly"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
)

// Options of an upload.
type Options struct {
	URL  *url.URL
	File io.ReaderAt
	Size quantity.Bytes
	TLS  *tls.Config
	// Links, Scheduler, Overlap and Window are as for a download.
	Links     []download.Link
	Scheduler schedule.Scheduler
	Overlap   float64
	Window    time.Duration
	// Rescue makes up for links that fail or fall behind; else the first
	// failure ends the upload, and nobody but the scheduler decides.
	Rescue bool
	// GiveUp is how long no link may get anything to the server.
	GiveUp time.Duration
	// Recorder gets the events; it may be nil.
	Recorder download.Recorder
}

const (
	// mostRequests is how many requests a link has in flight at a time.
	mostRequests = 4
	// least is the smallest range that rescue gives a link at the end.
	least = 64 << 10
	// look is how often links are looked at.
	look = 100 * time.Millisecond
	// firstPause and longestPause are how long a link that failed is left alone.
	firstPause   = 250 * time.Millisecond
	longestPause = 8 * time.Second
	// patience is the least time after which a link that gets nothing to the
	// server has failed; it is 4 round trips if these are more.
	patience = time.Second
)

// errWhole says that the server does not take ranges.
var errWhole = errors.New("the server takes no ranges")

// Run sends the file and says what came of it, also if it fails.
func Run(ctx context.Context, o Options) (rundir.Summary, error) {
	u := &upload{Options: o, start: time.Now()}
	err := u.run(ctx, false)
	if errors.Is(err, errWhole) {
		err = u.run(ctx, true)
	}
	end := u.now()
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

// upload is one that goes on. All below mu is locked by it.
type upload struct {
	Options
	start time.Time
	// ctx is that of the requests, which end ends.
	ctx context.Context
	end context.CancelCauseFunc
	// whole says that the file goes in one piece.
	whole bool

	mu    sync.Mutex
	links []*linkState
	// free is what nobody sends, and missing what the server has not confirmed.
	free, missing *ranges.Set
	requests      int
	// moved is when last a byte got to the server, as far as is known.
	moved time.Duration
	// refused is when the server began to refuse all that it gets; 0 if it does not.
	refused time.Duration
	running sync.WaitGroup
}

var errComplete = errors.New("complete")

// run sends all. It returns errWhole if the server refuses the first ranges.
func (u *upload) run(ctx context.Context, whole bool) error {
	all := ranges.Range{Length: u.Size}
	u.mu.Lock() // net/http may still read a body of the round before.
	u.whole = whole
	u.free, u.missing = ranges.NewSet(all), ranges.NewSet(all)
	u.ctx, u.end = context.WithCancelCause(ctx)
	if u.links == nil {
		for i, l := range u.Links {
			u.links = append(u.links, &linkState{Link: l, upload: u, index: i, meter: throughput.NewMeter(u.Window)})
		}
	}
	for _, l := range u.links {
		l.connect()
	}
	u.moved = u.now()
	u.fill()
	u.mu.Unlock()
	u.supervise()
	u.running.Wait()
	for _, l := range u.links {
		l.client.CloseIdleConnections()
	}
	if err := context.Cause(u.ctx); !errors.Is(err, errComplete) {
		return err
	}
	return nil
}

// supervise looks after the links until the end.
func (u *upload) supervise() {
	regularly.Do(u.ctx, look, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, l := range u.links {
			l.look()
		}
		if u.GiveUp > 0 && u.now()-u.moved > u.GiveUp {
			u.end(fmt.Errorf("nothing got to the server for %s%s", u.GiveUp, u.problems()))
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

// fill gives every link the requests that it may have.
func (u *upload) fill() {
	for _, l := range u.links {
		for u.ctx.Err() == nil && l.wants() {
			r, from, ok := u.next(l)
			if !ok {
				break
			}
			u.send(l, r, from)
		}
	}
}

// next is the range that a link sends next, and from whom it takes that over,
// if from anybody.
func (u *upload) next(l *linkState) (r ranges.Range, from string, ok bool) {
	first := u.free.First()
	if first.Length == 0 {
		return u.behind(l)
	}
	size := u.Size
	if !u.whole {
		size = u.Scheduler.Next(l.index, u.known())
		if u.Rescue {
			size = u.share(l, size)
		}
	}
	if size <= 0 {
		return r, "", false
	}
	first.Length = min(first.Length, size)
	return first, "", true
}

// share is a size that is not more than the link's part of the rest, so that
// all links end together. A scheduler that has no more for the link would leave
// it idle: it gets its part.
func (u *upload) share(l *linkState, size quantity.Bytes) quantity.Bytes {
	var all quantity.Rate
	for _, other := range u.links {
		all += other.rate()
	}
	if all == 0 || l.rate() == 0 {
		return max(size, least)
	}
	part := quantity.Bytes(float64(u.free.Bytes()) * float64(l.rate()) / float64(all))
	if size <= 0 {
		size = part
	}
	return max(least, min(size, part))
}

// behind is a range that another link will have sent last, if this one would
// send it sooner: both do, and who is confirmed first has done it.
func (u *upload) behind(l *linkState) (r ranges.Range, from string, ok bool) {
	if !u.Rescue || len(l.active) > 0 || u.whole {
		return r, "", false
	}
	var last *request
	var most time.Duration
	for _, other := range u.links {
		for _, one := range other.active {
			if left := other.left(one); other != l && !one.doubled && left > most {
				last, most = one, left
			}
		}
	}
	if last == nil || l.time(last.Length) >= most {
		return r, "", false
	}
	last.doubled = true
	return last.Range, last.link.Name, true
}

func (u *upload) known() schedule.Known {
	known := schedule.Known{Payload: u.Size}
	for _, l := range u.links {
		known.Links = append(known.Links, l.known())
	}
	return known
}

// request is a range on its way.
type request struct {
	ranges.Range
	id   int
	link *linkState
	// taken is how much of it the connection has taken.
	taken  quantity.Bytes
	issued time.Duration
	// moved is when it took something last.
	moved   time.Duration
	doubled bool
	cancel  context.CancelCauseFunc
}

// send begins a request; what comes of it is for finish.
func (u *upload) send(l *linkState, r ranges.Range, from string) {
	u.free.Remove(r)
	u.requests++
	ctx, cancel := context.WithCancelCause(u.ctx)
	one := &request{Range: r, id: u.requests, link: l, issued: u.now(), moved: u.now(), doubled: from != "", cancel: cancel}
	l.active, l.newest = append(l.active, one), one
	l.requests++
	l.meter.Start(one.issued)
	u.record(&rundir.Request{
		Link: l.Name, ID: one.id, Offset: int64(r.Offset), Length: int64(r.Length),
		Rate: float64(l.rate()), From: from,
	})
	client := l.client
	u.running.Go(func() {
		err := u.put(ctx, client, one)
		cancel(nil)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.finish(one, err)
	})
}

// put makes the request.
func (u *upload) put(ctx context.Context, client *http.Client, one *request) error {
	body := &body{SectionReader: io.NewSectionReader(u.File, int64(one.Offset), int64(one.Length)), request: one, upload: u}
	sent, err := http.NewRequestWithContext(ctx, http.MethodPut, u.URL.String(), body)
	if err != nil {
		return err
	}
	sent.ContentLength = int64(one.Length)
	if !u.whole {
		sent.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", int64(one.Offset), int64(one.End()-1), int64(u.Size)))
	}
	answer, err := client.Do(sent)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if inner := new(url.Error); errors.As(err, &inner) {
			err = inner.Err // Who reads it knows the URL.
		}
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)); err != nil {
		return err
	}
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return nil
	}
	return &refusal{answer.StatusCode, answer.Status}
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

// finish takes note of what came of a request.
func (u *upload) finish(one *request, err error) {
	l := one.link
	l.active = slices.DeleteFunc(l.active, func(r *request) bool { return r == one })
	end := &rundir.End{Link: l.Name, ID: one.id, Bytes: int64(one.Length), Outcome: rundir.Complete}
	switch {
	case u.ctx.Err() != nil && err != nil:
		end.Outcome, end.Bytes = rundir.Cancelled, int64(one.taken)
	case err == nil:
		l.confirmed(one)
	case errors.Is(err, errTaken):
		end.Outcome, end.Bytes, end.Wasted = rundir.Cancelled, 0, int64(one.taken)
		l.wasted += one.taken
	default:
		end.Outcome, end.Bytes, end.Error, end.Wasted = rundir.Failed, 0, printable.Message(err.Error()), int64(one.taken)
		l.wasted += one.taken
		u.failed(one, err)
	}
	u.record(end)
	u.fill()
}

// errTaken ends a request whose range another link has brought.
var errTaken = errors.New("another link has sent it")

// confirmed takes note of a range that the server has.
func (l *linkState) confirmed(one *request) {
	u := l.upload
	news := u.missing.Remove(one.Range)
	l.bytes += news
	l.wasted += one.Length - news
	l.last, u.moved, u.refused, l.failures, l.problem = u.now(), u.now(), 0, 0, nil
	for _, other := range u.links {
		for _, rival := range other.active {
			if rival.Range == one.Range {
				rival.cancel(errTaken)
			}
		}
	}
	if u.missing.Bytes() == 0 {
		u.end(errComplete)
	}
}

// failed decides what follows from a failure.
func (u *upload) failed(one *request, err error) {
	u.giveBack(one)
	refused := new(refusal)
	isRefusal := errors.As(err, &refused)
	switch {
	case isRefusal && refused.ofRange() && !u.whole && u.missing.Bytes() == u.Size:
		u.end(errWhole)
	case isRefusal && !refused.passes():
		u.end(refused)
	case !u.Rescue:
		u.end(fmt.Errorf("%s: %w", one.link.Name, err))
	case isRefusal && u.refuses():
		u.end(fmt.Errorf("the server has taken nothing for %s: it answers %s", u.GiveUp, refused.said()))
	default:
		one.link.pause(err)
	}
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
	if u.missing.Below(one.End()) == u.missing.Below(one.Offset) {
		return
	}
	for _, l := range u.links {
		for _, other := range l.active {
			if other.Range == one.Range {
				other.doubled = false
				return
			}
		}
	}
	u.free.Add(one.Range)
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
	u, l := b.upload, b.request.link
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
		l.meter.Add(b.request.moved, quantity.Bytes(n))
		if l.newest == b.request && l.wants() {
			u.fill()
		}
	}
	return n, err
}
