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
	"github.com/linklab/linklab/client/internal/partfile"
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
	// pause is the last wait since new bytes arrived.
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
