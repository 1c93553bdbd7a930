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
	"strings"
	"sync"
	"sync/atomic"
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
	// Header is sent with every request. After a redirect to another origin the client leaves out
	// the fields of Private, Authorization, Cookie and Host.
	Header  http.Header
	Private []string
	TLS     *tls.Config
	// Hellos may be shared with other transfers. nil remembers nothing from connection to connection.
	Hellos *transport.Hellos
	// Links, Scheduler, Overlap and Window are as for a download.
	Links     []transfer.Link
	Scheduler schedule.Scheduler
	Overlap   float64
	Window    time.Duration
	// Ranged says that the server is known to take ranges.
	Ranged bool
	// Rescue lets other links take over from a link that fails or falls behind. Without it only
	// the scheduler decides, and the first failure ends the upload.
	Rescue bool
	// Connections lets links have several connections, with Rescue; nil is one each.
	Connections *transfer.Connections
	// GiveUp is how long the upload goes on while no new bytes get to the server.
	GiveUp time.Duration
	// LowestRate is the least total rate of all links, averaged over GiveUp; 0 is no limit.
	LowestRate quantity.Rate
	// Check is called when the server has all bytes. It returns an error if the file has changed
	// meanwhile; it may be nil.
	Check func() error
	// Recorder gets the events; it may be nil.
	Recorder transfer.Recorder
}

const (
	// mostRequests is how many requests a link of one connection has in flight at a
	// time.
	mostRequests = 4
	// patience is how long a server may take to confirm bytes that it has; schedule.FewTrips round trips if
	// that is longer.
	patience = time.Second
	// mostRedirects is how many redirects are followed in a row.
	mostRedirects = 10
)

// errWhole says that the server does not take ranges.
var errWhole = errors.New("the server takes no ranges")

// Run sends the file. The summary is valid in case of an error, too.
func Run(ctx context.Context, o Options) (rundir.Summary, error) {
	u := &upload{Options: o, start: time.Now(), floor: throughput.Floor{Rate: o.LowestRate, Span: o.GiveUp}}
	u.balance.Expect(o.Size)
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

// deliver sends the file, and follows redirects. It returns when all bytes were sent.
func (u *upload) deliver(ctx context.Context) (end time.Duration, err error) {
	for i, l := range u.Links {
		u.links = append(u.links, u.newLink(i, l))
	}
	end, err = u.transfer(ctx)
	for hops, to := 0, new(transport.RedirectError); errors.As(err, &to); hops++ {
		if hops == mostRedirects {
			return end, fmt.Errorf("%w, which is not followed", err)
		}
		u.redirect(to.Location)
		end, err = u.transfer(ctx)
	}
	return end, err
}

// redirect makes another URL the target. Another origin gets no credentials (RFC 9110 15.4).
func (u *upload) redirect(to *url.URL) {
	if !transport.IsSameOrigin(to, u.URL) {
		u.Header = u.Header.Clone()
		for _, name := range append([]string{"Authorization", "Cookie", "Host"}, u.Private...) {
			u.Header.Del(name)
		}
	}
	u.URL = to
	u.isAsked.Store(false)
}

// transfer sends the file, and makes sure that it did not change meanwhile.
func (u *upload) transfer(ctx context.Context) (end time.Duration, err error) {
	err = u.run(ctx, !u.Ranged)
	if errors.Is(err, errWhole) {
		err = u.run(ctx, true)
	}
	end = u.now()
	if err == nil && u.Check != nil {
		err = u.Check()
	}
	return end, err
}

// upload is the state of one upload. mu guards all below it.
type upload struct {
	Options
	start time.Time
	// ctx is the context of the requests, which end cancels.
	ctx context.Context
	end context.CancelCauseFunc
	// whole says that the file goes in one piece.
	whole bool

	mu    sync.Mutex
	links []*linkState
	// free are the bytes that no request sends, and missing those that the server has not
	// confirmed.
	free, missing *ranges.Set
	requests      int
	// balance counts the bytes that were sent. Its progress are the bytes that got to the server.
	balance transfer.Balance
	// isAsked says that the server has answered a request with the whole file.
	isAsked atomic.Bool
	// got is how many bytes got to the server, and floor the least rate of these.
	got   quantity.Bytes
	floor throughput.Floor
	// refused is when the server began to refuse all requests; 0 if it does not.
	refused time.Duration
	running sync.WaitGroup
}

// run sends all bytes. It returns errWhole if the server refuses the first ranges.
func (u *upload) run(ctx context.Context, whole bool) error {
	all := ranges.Range{Length: u.Size}
	u.mu.Lock() // net/http may still read a body of the last round.
	u.whole = whole
	u.free, u.missing = ranges.NewSet(all), ranges.NewSet(all)
	u.ctx, u.end = context.WithCancelCause(ctx)
	u.balance.Came(1, u.now())
	u.floor.Restart(u.now(), u.got)
	for _, l := range u.links {
		l.start()
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

// supervise looks at the links at regular times until the end.
func (u *upload) supervise() {
	regularly.Do(u.ctx, transfer.CheckInterval, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		now := u.now()
		for _, l := range u.links {
			l.tend(now)
		}
		if u.GiveUp > 0 && now-u.balance.Moved > u.GiveUp {
			what := "nothing"
			if now-u.heard() < u.GiveUp {
				what = "nothing new"
			}
			u.end(fmt.Errorf("%s got to the server for %s%s", what, u.GiveUp, u.problems()))
		}
		if u.floor.IsUnder(now, u.got) {
			u.end(fmt.Errorf("less than %v bit/s got to the server for %s: --lowest-rate says how little is allowed, 0 for anything%s", float64(u.LowestRate), u.GiveUp, u.problems()))
		}
		u.fill()
	})
}

// heard is when bytes got to the server last.
func (u *upload) heard() (last time.Duration) {
	for _, l := range u.links {
		for _, one := range l.connections {
			last = max(last, one.got)
		}
	}
	return last
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
