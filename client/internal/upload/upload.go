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
	// Header is sent with every request. To where a redirect
	// leads beyond the origin of URL, none of Private goes, nor Authorization, Cookie and Host.
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
	// GiveUp is how long no link may get anything new to the server.
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
	// mostRedirects is how many redirects are followed in a row.
	mostRedirects = 10
)

// errWhole says that the server does not take ranges.
var errWhole = errors.New("the server takes no ranges")

// Run sends the file and says what came of it, also if it fails.
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
	for hops, to := 0, new(transport.RedirectError); errors.As(err, &to); hops++ {
		if hops == mostRedirects || u.to.isBeside() {
			return end, fmt.Errorf("%w, which is not followed", err)
		}
		u.redirect(to.Location)
		asker.close()
		end, err = u.transfer(ctx, asker, !u.to.ranged)
	}
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

// redirect has the file go elsewhere. Another origin gets no credentials (RFC 9110 15.4).
func (u *upload) redirect(to *url.URL) {
	if !transport.IsSameOrigin(to, u.URL) {
		u.Header = u.Header.Clone()
		for _, name := range append([]string{"Authorization", "Cookie", "Host"}, u.Private...) {
			u.Header.Del(name)
		}
	}
	u.URL, u.to.target = to, to
	u.isAsked.Store(false)
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
	// balance is the account of what was sent. Its progress is what got to the server.
	balance transfer.Balance
	// isAsked says that the server has answered a request for the whole.
	isAsked atomic.Bool
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

// supervise looks after the links until the end.
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

// heard is when something got to the server last.
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

// target is what a request is about, with what users have sent along.
func (u *upload) target(to *url.URL) transport.Target {
	return transport.Target{URL: to, Header: u.Header}
}

// as is a question with what users have sent along.
func (u *upload) as(q transport.Question) transport.Question {
	q.Target = u.target(q.Target.URL)
	return q
}
