package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/quota"
	"github.com/linklab/linklab/client/internal/rundir"
)

// accountInterval is the interval at which changed accounts are written. A killed daemon loses what
// was counted since.
const accountInterval = 10 * time.Second

// A download that no link can reach is tried again after leastWait, and then after twice as long each
// time.
const (
	leastWait = time.Second
	mostWait  = time.Minute
)

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
		q.wait(e, outage)
	default:
		q.end(e, Failed, err.Error())
	}
	if err := q.save(); err != nil {
		q.Log.Error("the queue cannot be saved", "error", err)
	}
}

// wait lets a download wait for its next try; q.mu is held.
func (q *Queue) wait(e *entry, why *download.Outage) {
	if why.Progress {
		e.pause = 0
	}
	e.pause = min(max(leastWait, 2*e.pause), mostWait)
	e.State, e.Error, e.RetryAt = Waiting, why.Error(), time.Now().Add(max(e.pause, why.RetryAfter))
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
