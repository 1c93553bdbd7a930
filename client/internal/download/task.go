package download

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// task is what both engines know of a download: what to download, where to, and what has arrived.
type task struct {
	Options
	start  time.Time
	end    time.Duration
	sink   Sink
	window Window // sink, if it is one
	// earlier is the sink, if it has bytes of an earlier call.
	earlier Continuer
	// ctx is that of the transfer, which cancel ends.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	// do performs an action: at once, or after the present step of the loop.
	do func(action)

	// In the engine of published algorithms mu guards everything below. In the other one the loop owns it.
	mu       sync.Mutex
	resource transport.Resource
	part     ranges.Range
	payload  *ranges.Payload // nil until the size is known
	// resumed is how many bytes the sink held from the beginning.
	resumed  quantity.Bytes
	requests int
	// ranged says that the server has answered a request for a range with that range.
	ranged bool
	// isOver says that the transfer ends: no more requests are sent.
	isOver bool
	// balance counts the bytes that arrived. floor is their least total rate.
	balance *transfer.Balance
	floor   throughput.Floor
}

// An engine decides which link brings which bytes.
type engine interface {
	// all is what both engines know.
	all() *task
	// transfer receives all bytes, or returns why it cannot.
	transfer(context.Context) error
	// summarize adds what the engine knows of the links and of the outcome.
	summarize(*rundir.Summary)
}

// begin makes t a task that begins now.
func (t *task) begin(o Options) {
	t.Options, t.start, t.balance = o, time.Now(), o.Balance
	t.do = action.perform
	t.floor = throughput.Floor{Rate: o.LowestRate, Span: o.GiveUp}
	if t.balance == nil {
		t.balance = new(transfer.Balance)
	}
}

func (t *task) all() *task { return t }

// Run downloads into the sink. The summary is valid in case of an error, too; the caller adds the version and the
// algorithm. When ctx ends, Run ends with its cause, and the outcome is interrupted.
func Run(ctx context.Context, o Options) (rundir.Summary, error) {
	if o.Rescue && o.Connections != nil && o.Pool == nil {
		o.Pool = newPool(forever)
		defer o.Pool.Close()
	}
	var e engine
	if o.Rescue {
		e = withLinks(o)
	} else {
		e = newPublished(o)
	}
	t := e.all()
	sum, err := t.run(ctx, e)

	summary := rundir.Summary{
		URL:       o.URL.Redacted(),
		Size:      max(0, t.resource.Size),
		Outcome:   rundir.Complete,
		StartedAt: t.start.UnixNano(),
		Download:  t.end.Nanoseconds(),
		Resumed:   t.resumed,
		Links:     map[string]rundir.LinkSummary{},
	}
	if t.Slice != nil {
		summary.Size = max(0, t.part.Length)
	}
	e.summarize(&summary)
	done := &rundir.Done{Download: t.end.Nanoseconds()}
	switch {
	case err == nil:
		summary.SHA256 = hex.EncodeToString(sum)
	case ctx.Err() != nil:
		summary.Outcome = rundir.Interrupted
	default:
		summary.Outcome = rundir.Failed
	}
	if err != nil {
		summary.Error = err.Error()
	}
	done.Outcome, done.Error = summary.Outcome, summary.Error
	recordEvent{t, time.Since(t.start), done}.perform() // The engine has ended, or has not begun.
	return summary, err
}

// run downloads the resource and returns its checksum.
func (t *task) run(ctx context.Context, by engine) (sum []byte, err error) {
	t.sink, err = t.Output()
	if err != nil {
		t.end = time.Since(t.start)
		return nil, err
	}
	t.window, _ = t.sink.(Window)
	if sink, ok := t.sink.(Continuer); ok && sink.Continues() {
		t.earlier = sink
	}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	if err := by.transfer(t.ctx); err != nil {
		return nil, errors.Join(err, t.sink.Abort(errors.Is(err, transport.ErrTooLong)))
	}
	return t.sink.Commit()
}

// ended returns why the transfer ended, nil if all bytes arrived.
func (t *task) ended() error {
	if err := context.Cause(t.ctx); err != transfer.ErrComplete {
		t.end = time.Since(t.start)
		return err
	}
	return nil
}

func (t *task) target(of transport.Target) transport.Target {
	of.Header = t.Header
	if of.Header != nil && !transport.IsSameOrigin(of.URL, t.URL) {
		of.Header = of.Header.Clone()
		for _, name := range append([]string{"Authorization", "Cookie", "Host"}, t.Private...) {
			of.Header.Del(name)
		}
	}
	of.IsFile = t.wantsFile()
	return of
}

// wantsFile reports whether a web page cannot be the server's answer: ranges of another type have come, or the URL
// names no page and a false answer could do harm. That is so without TLS, or where an earlier call left bytes.
func (t *task) wantsFile() bool {
	switch {
	case t.resource.IsPage:
		return false
	case t.ranged && t.payload != nil:
		return true
	}
	return !NamesPage(t.URL) && (t.URL.Scheme == "http" || t.earlier != nil)
}

func (t *task) maxHops() int { return max(0, cmp.Or(t.Redirects, usualRedirects)) }

// errTooManyHops says that a redirect leads to one more.
func (t *task) errTooManyHops(to *transport.RedirectError) error {
	return fmt.Errorf("the server redirects more than %d times, at last to %s", t.maxHops(), printable.Text(to.Location.String()))
}

// limit is the offset from which the sink has no room: nothing behind it is requested.
func (t *task) limit() quantity.Bytes {
	if t.window == nil {
		return math.MaxInt64
	}
	return t.window.Limit()
}

// follow calls grown each time the sink has more room.
func (t *task) follow(grown func()) {
	var failed <-chan error
	if sink, ok := t.sink.(Failer); ok {
		failed = sink.Failed()
	}
	for {
		select {
		case <-t.ctx.Done():
			return
		case err := <-failed:
			t.cancel(sinkError{err})
			return
		case <-t.window.Grown():
		}
		grown()
	}
}

// describe takes an answer about the resource.
func (t *task) describe(resource transport.Resource) (err error) {
	t.part = t.Part
	if t.Slice != nil {
		if t.part, err = t.Slice.of(resource.Size); err != nil {
			return sinkError{err}
		}
	}
	if t.part.Length == 0 {
		t.part = ranges.Range{Length: resource.Size}
	}
	if t.part.Offset < 0 || t.part.Length < 0 && resource.Size >= 0 || resource.Size >= 0 && t.part.End() > resource.Size {
		return sinkError{fmt.Errorf("bytes %d-%d are not in the resource of %d bytes", t.part.Offset, t.part.End()-1, resource.Size)}
	}
	resource.Verified = t.Verified
	t.resource = resource
	if resource.ETag == "" {
		t.note(slog.LevelWarn, "the server gives no strong ETag: a change of the file during the download may go unnoticed", "last-modified", resource.LastModified)
	}
	if resource.Coding != "" {
		t.note(slog.LevelWarn, "the server encodes the file: it is stored as it comes", "content-encoding", printable.Message(resource.Coding))
	}
	return nil
}

// sinkBegan takes what the sink has of the resource, or why it cannot take it. The answer about the resource came over a
// link. isWhole says that it brings no ranges.
func (t *task) sinkBegan(have []ranges.Range, err error, link string, isWhole bool, now time.Duration) error {
	t.balance.Has(have...)
	t.balance.Expect(t.resource.Size) // Of a part, too: an answer may bring the whole.
	if !isWhole {
		t.resumed = ranges.NewSet(have...).Bytes()
	}
	size := t.resource.Size
	if t.Slice != nil {
		size = t.part.Length
	}
	t.record(now, &rundir.Size{Bytes: int64(max(0, size)), ETag: t.resource.ETag, Link: link, Resumed: int64(t.resumed)})
	if err != nil {
		return sinkError{err}
	}
	return nil
}

// knownPayload is what schedulers are told, except the links, for which it uses memory again.
func (t *task) knownPayload(links []schedule.Link) schedule.Known {
	known := schedule.Known{Payload: t.part.Length, Links: links[:0]}
	if t.window != nil {
		known.Payload, known.InOrder = min(known.Payload, t.window.Size()), true
	}
	return known
}

// free is how many bytes the sink has room for and no request is for.
func (t *task) free() quantity.Bytes { return t.payload.Free(t.limit()) }

// take orders the next free bytes, at most so many.
func (t *task) take(size quantity.Bytes) order {
	r, _ := t.payload.Take(size, t.limit())
	return order{Range: r}
}

// show tells a plan of the bytes, of which so many are assigned and missing.
func (t *task) show(s *schedule.Scene, assigned quantity.Bytes) {
	s.Payload, s.Start, s.Free = t.part.Length, t.part.Offset, t.free()
	s.Left = t.payload.Free(math.MaxInt64) + assigned
	// The payload does not know yet of a request that was just given up.
	s.InOrder = max(s.InOrder, t.payload.Missing().Offset)
	if s.Left == 0 {
		s.InOrder = t.part.End()
	}
}

// isProven reports whether a validator or a checksum proves that later bytes are of the same file.
func (t *task) isProven() bool { return t.resource.HasValidator() || t.Verified }

// isUnproven reports whether nothing proves that a second range is of the same file.
func (t *task) isUnproven() bool { return t.requests > 0 && !t.isProven() }

var errUnproven = errors.New("the server gives neither a strong ETag nor Last-Modified, so that nothing proves that several ranges are of one file: give its checksum, or use the algorithm single")

func (t *task) completeIfAllArrived(now time.Duration) {
	if t.payload.Complete() {
		t.end = now
		t.finish(transfer.ErrComplete)
	}
}

// slowness is why the transfer ends: no new bytes arrived for too long, or too few. It is nil if
// neither is so, or if nothing is waited for since the sink has no room.
func (t *task) slowness(isWaiting bool, received quantity.Bytes, now time.Duration) error {
	if !isWaiting {
		t.balance.Moved = now
		t.floor.Restart(now, received)
	}
	switch {
	case t.GiveUp > 0 && now-t.balance.Moved >= t.GiveUp:
		return fmt.Errorf("nothing new arrived for %v", t.GiveUp)
	case t.floor.IsUnder(now, received):
		return fmt.Errorf("less than %v bit/s arrived for %v: --lowest-rate says how little is allowed, 0 for anything", float64(t.LowestRate), t.GiveUp)
	}
	return nil
}

// fail ends the transfer. Run reports the first failure.
func (t *task) fail(link string, err error) { t.finish(fmt.Errorf("link %s: %w", link, err)) }

// finish ends the transfer: complete, or with an error. The first call decides.
func (t *task) finish(err error) {
	t.isOver = true
	t.do(endTransfer{t, err})
}

func (t *task) record(at time.Duration, e rundir.Event) {
	if len(t.Recorders) > 0 {
		t.do(recordEvent{t, at, e})
	}
}

func (t *task) note(level slog.Level, text string, args ...any) { t.do(writeLog{t, level, text, args}) }
