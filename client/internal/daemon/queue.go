// Package daemon keeps a queue of downloads that survives the process. Other programs use it
// through a UNIX socket, as the client of thesis 4.4.3 accepts URLs.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/quota"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
)

// A Run downloads. It returns soon after the end of its context, and can be started again later.
type Run func(ctx context.Context, r transfer.Recorder) (rundir.Summary, error)

// Options configures a queue.
type Options struct {
	// StateDirectory holds the queue and the links' accounts.
	StateDirectory string
	// Directory is the directory of the downloaded files.
	Directory string
	// Parallel limits how many downloads run at a time.
	Parallel int
	// Prepare checks and completes a request, and returns its Run. Its error is the user's.
	// Different spellings of one file name give the same Output.
	Prepare func(*Request) (Run, error)
	// Links are the quotas of the links. Their accounts are stored.
	Links []*quota.Link
	Log   *slog.Logger
}

// keptEnded is how many ended downloads stay in the queue.
const keptEnded = 100

// accountInterval is the interval at which changed accounts are written. A killed daemon loses what
// was counted since.
const accountInterval = 10 * time.Second

// A download that no link can reach is tried again after leastWait, and then after twice as long each
// time.
const (
	leastWait = time.Second
	mostWait  = time.Minute
)

// Errors of requests.
var (
	ErrUnknown = errors.New("there is no such download")
	ErrEnded   = errors.New("the download has ended")
	ErrTaken   = errors.New("another download in the queue writes this file")
)

// RequestError is an error in a request.
type RequestError struct{ error }

func (e RequestError) Unwrap() error { return e.error }

// Queue runs downloads in the order in which they were added.
type Queue struct {
	Options
	store *store
	// changed wakes Run.
	changed chan struct{}

	mu      sync.Mutex
	lastID  int
	entries []*entry
	// saved holds the accounts as last written.
	saved map[string]quota.Usage
	// held is when links may be used again after all of them reached their caps.
	held time.Time
}

// entry is a download in the queue.
type entry struct {
	Download
	run Run
	// cancel ends a running download, else nil.
	cancel context.CancelCauseFunc
	// pause is the last wait since bytes arrived.
	pause time.Duration
	// ended is closed when the state is final.
	ended chan struct{}
}

var errCancelled = errors.New("cancelled")

// Open restores the queue of an earlier process, if any. The caller must close it.
func Open(o Options) (*Queue, error) {
	store, kept, err := openStore(o.StateDirectory)
	if err != nil {
		return nil, err
	}
	q := &Queue{Options: o, store: store, changed: make(chan struct{}, 1), lastID: kept.LastID, saved: kept.Links}
	hidden := false
	for _, d := range kept.Downloads {
		e := &entry{Download: d, ended: make(chan struct{})}
		if !e.State.Ended() {
			e.State, e.RetryAt = Queued, time.Time{}
			// A request may have become wrong, for example by a removed directory.
			if e.run, err = o.Prepare(&e.Request); err != nil {
				q.end(e, Failed, err.Error())
			}
		} else {
			close(e.ended)
		}
		// Earlier versions stored the credentials in URLs.
		public := credentials.Hide(e.URL)
		hidden = hidden || public != e.URL
		e.URL = public
		q.entries = append(q.entries, e)
	}
	for _, l := range o.Links {
		if usage, ok := kept.Links[l.Name]; ok {
			l.Restore(usage)
		}
	}
	if hidden {
		if err := q.save(); err != nil {
			q.Close()
			return nil, err
		}
	}
	return q, nil
}

// Close releases the state directory for another process.
func (q *Queue) Close() { q.store.close() }

// Run runs downloads until ctx ends. Running downloads then stay in the queue.
func (q *Queue) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	ticker := time.NewTicker(accountInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		wait := q.startReady(ctx, &wg)
		select {
		case <-ctx.Done():
		case <-q.changed:
		case <-wait:
		case <-ticker.C:
			q.saveAccounts()
		}
	}
	wg.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.save()
}

// startReady starts the downloads that may run. wait, if not nil, tells when more may run.
func (q *Queue) startReady(ctx context.Context, wg *sync.WaitGroup) (wait <-chan time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if left := time.Until(q.held); left > 0 {
		return time.After(min(left, time.Hour)) // The clock may be set.
	}
	running := 0
	for _, e := range q.entries {
		if e.State == Running {
			running++
		}
	}
	for ; running < q.Parallel; running++ {
		e := q.next()
		if e == nil {
			return nil
		}
		if left := time.Until(e.RetryAt); left > 0 {
			return time.After(left)
		}
		var of context.Context
		of, e.cancel = context.WithCancelCause(ctx)
		e.State, e.RetryAt, e.StartedAt, e.Links = Running, time.Time{}, time.Now(), map[string]Progress{}
		q.Log.Info("download starts", "id", e.ID, "output", e.Output)
		wg.Go(func() { q.download(of, e) })
	}
	return nil
}

// next returns the next download to start: the first queued one, else the one whose wait ends first.
// So waiting downloads delay no queued one.
func (q *Queue) next() (next *entry) {
	for _, e := range q.entries {
		switch {
		case e.State == Queued:
			return e
		case e.State == Waiting && (next == nil || e.RetryAt.Before(next.RetryAt)):
			next = e
		}
	}
	return next
}

// download runs one download to its end.
func (q *Queue) download(ctx context.Context, e *entry) {
	defer e.cancel(nil)
	summary, err := e.run(ctx, recorder{q, e})
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wake()
	for name, p := range e.Links {
		p.Throughput = 0
		e.Links[name] = p
	}
	for name, l := range summary.Links {
		e.Links[name] = Progress{Received: l.Bytes}
	}
	if summary.Size > 0 {
		e.Size = summary.Size
	}
	e.SHA256, e.Warning = summary.SHA256, summary.Warning
	reached, outage := new(quota.CapError), new(download.Outage)
	switch {
	case err == nil:
		q.end(e, Complete, "")
	case context.Cause(ctx) == errCancelled:
		q.end(e, Cancelled, "")
	case ctx.Err() != nil:
		e.State = Queued
	case errors.As(err, &reached) && !q.firstReset().IsZero():
		q.held = q.firstReset()
		e.State, e.Error = Queued, err.Error()
		q.Log.Warn("the queue waits", "until", q.held, "error", err)
	case errors.As(err, &outage):
		q.wait(e, err, outage.RetryAfter)
	default:
		q.end(e, Failed, err.Error())
	}
	if err := q.save(); err != nil {
		q.Log.Error("the queue cannot be saved", "error", err)
	}
}

// wait lets a download wait for its next try; q.mu is held.
func (q *Queue) wait(e *entry, why error, least time.Duration) {
	for _, l := range e.Links {
		if l.Received > 0 {
			e.pause = 0
		}
	}
	e.pause = min(max(leastWait, 2*e.pause), mostWait)
	e.State, e.Error, e.RetryAt = Waiting, why.Error(), time.Now().Add(max(e.pause, least))
	q.Log.Warn("download waits", "id", e.ID, "output", e.Output, "until", e.RetryAt, "error", why)
}

// firstReset returns when the first link may be used again after its cap was reached. It returns zero
// if none ever may, or if a link has not reached its cap.
func (q *Queue) firstReset() (first time.Time) {
	for _, l := range q.Links {
		reached := new(quota.CapError)
		if !errors.As(l.Err(), &reached) {
			return time.Time{}
		}
		if !reached.Until.IsZero() && (first.IsZero() || reached.Until.Before(first)) {
			first = reached.Until
		}
	}
	return first
}

// end sets the final state of a download; q.mu is held.
func (q *Queue) end(e *entry, s State, why string) {
	e.State, e.Error, e.RetryAt, e.EndedAt, e.run = s, why, time.Time{}, time.Now(), nil
	q.Log.Info("download ends", "id", e.ID, "output", e.Output, "state", s, "error", why)
	close(e.ended)
}

// Add adds a download at the end of the queue.
func (q *Queue) Add(r Request) (Download, error) {
	run, err := q.Prepare(&r)
	if err != nil {
		return Download{}, RequestError{err}
	}
	err = partfile.CheckFree(filepath.Join(q.Directory, r.Output))
	switch {
	case errors.Is(err, partfile.ErrExists):
		return Download{}, err
	case err != nil:
		return Download{}, RequestError{err}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		if e.Output == r.Output && !e.State.Ended() {
			return Download{}, fmt.Errorf("%s: %w", r.Output, ErrTaken)
		}
	}
	q.lastID++
	e := &entry{
		Download: Download{ID: q.lastID, Request: r, State: Queued, AddedAt: time.Now()},
		run:      run,
		ended:    make(chan struct{}),
	}
	before := q.entries
	q.entries = append(q.trimmed(), e)
	if err := q.save(); err != nil {
		q.entries = before
		return Download{}, fmt.Errorf("the queue cannot be saved: %w", err)
	}
	q.wake()
	return e.copy(), nil
}

// trimmed returns the entries without the oldest ended ones.
func (q *Queue) trimmed() (kept []*entry) {
	ended := 0
	for _, e := range slices.Backward(q.entries) {
		if e.State.Ended() {
			ended++
		}
		if !e.State.Ended() || ended <= keptEnded {
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

// List returns all downloads, the oldest first.
func (q *Queue) List() []Download {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := make([]Download, len(q.entries))
	for i, e := range q.entries {
		list[i] = e.copy()
	}
	return list
}

// Get returns one download.
func (q *Queue) Get(id int) (Download, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, err := q.find(id)
	if err != nil {
		return Download{}, err
	}
	return e.copy(), nil
}

// Wait returns a download after it has ended, or in its present state when ctx ends.
func (q *Queue) Wait(ctx context.Context, id int) (Download, error) {
	q.mu.Lock()
	e, err := q.find(id)
	q.mu.Unlock()
	if err != nil {
		return Download{}, err
	}
	select {
	case <-e.ended:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return e.copy(), nil
}

// Cancel ends a download that has not ended. Wait tells when it has.
func (q *Queue) Cancel(id int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, err := q.find(id)
	switch {
	case err != nil:
		return err
	case e.State == Running:
		e.cancel(errCancelled)
		return nil
	case e.State == Queued, e.State == Waiting:
		q.end(e, Cancelled, "")
		return q.save()
	}
	return fmt.Errorf("%w: it is %s", ErrEnded, e.State)
}

// LinkStatus returns the accounts of the links.
func (q *Queue) LinkStatus() []LinkStatus {
	list := make([]LinkStatus, len(q.Links))
	for i, l := range q.Links {
		usage := l.Usage()
		list[i] = LinkStatus{Link: l.Name, Cap: l.Cap, Period: l.Period, Since: usage.Since, Used: usage.Bytes}
	}
	return list
}

func (q *Queue) find(id int) (*entry, error) {
	for _, e := range q.entries {
		if e.ID == id {
			return e, nil
		}
	}
	return nil, fmt.Errorf("%w: %d", ErrUnknown, id)
}

// save writes the state; q.mu is held.
func (q *Queue) save() error {
	kept := state{Format: stateFormat, LastID: q.lastID, Links: q.accounts()}
	for _, e := range q.entries {
		kept.Downloads = append(kept.Downloads, e.copy())
	}
	if err := q.store.write(kept); err != nil {
		return err
	}
	q.saved = kept.Links
	return nil
}

// saveAccounts writes the state if the accounts have changed.
func (q *Queue) saveAccounts() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, usage := range q.accounts() {
		if q.saved[name] != usage {
			if err := q.save(); err != nil {
				q.Log.Error("the queue cannot be saved", "error", err)
			}
			return
		}
	}
}

// accounts returns the accounts of the links, and of links that are not in use now.
func (q *Queue) accounts() map[string]quota.Usage {
	accounts := map[string]quota.Usage{}
	maps.Copy(accounts, q.saved)
	for _, l := range q.Links {
		accounts[l.Name] = l.Usage()
	}
	return accounts
}

func (q *Queue) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// copy returns the present download; the queue's lock is held.
func (e *entry) copy() Download {
	d := e.Download
	d.Links = maps.Clone(e.Links)
	return d
}

// recorder follows a running download.
type recorder struct {
	queue *Queue
	entry *entry
}

func (r recorder) Record(_ time.Duration, event rundir.Event) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	switch event := event.(type) {
	case *rundir.Size:
		r.entry.Size, r.entry.Error = quantity.Bytes(event.Bytes), ""
	case *rundir.Sample:
		r.entry.Links[event.Link] = Progress{Received: quantity.Bytes(event.Received), Throughput: quantity.Rate(event.Throughput)}
	}
}
