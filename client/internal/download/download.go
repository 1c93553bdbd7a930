// Package download is the engine that all algorithms share: it connects the
// links, asks the scheduler for ranges, receives them concurrently, checks
// them and writes them to a sink.
package download

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/regularly"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// Options says what to download and how.
type Options struct {
	URL       *url.URL
	Links     []transfer.Link
	Scheduler schedule.Scheduler
	// Overlap is the part of a link's newest request that must have arrived
	// before the link's next request is issued: above 0 to 1. It is
	// 0.6 in thesis 4.2.2.
	Overlap float64
	// Window is the time over which throughput is averaged.
	Window time.Duration
	// Rescue makes up for links that fail or fall behind; else all is done as
	// published (see policy).
	Rescue bool
	// GiveUp is how long no new byte may arrive on any link before the download
	// fails; 0 waits for ever.
	GiveUp time.Duration
	// Balance, if set, is the account of what the caller has already received of the file.
	Balance *transfer.Balance
	// LowestRate is what must arrive on all links together, over GiveUp; 0 is nothing.
	LowestRate quantity.Rate
	// Connections lets links have several connections, with Rescue; nil is one each.
	Connections *transfer.Connections
	// Output opens what the bytes are written to, before anything else.
	Output func() (Sink, error)
	// Verified says that Commit compares the whole with a checksum, so that
	// no validator is needed.
	Verified bool
	// Header is sent with every request. To where a redirect leads beyond the origin
	// of URL (RFC 6454), none of Private goes, nor Authorization, Cookie and Host.
	Header  http.Header
	Private []string
	// Redirects is how many are followed in a row; 0 is usualRedirects, NoRedirects
	// is none.
	Redirects int
	// Resource is what the URL stands for, if that is known; else a link
	// asks first.
	Resource *transport.Resource
	// Part is the part of the resource to download; if it is empty, all. Slice, if
	// set, says so of one whose size is not known.
	Part  ranges.Range
	Slice *Slice
	// IsSlowToAnswer says that the server is known to take long for each answer.
	IsSlowToAnswer bool
	// Pool, if set, has connections of earlier downloads, and keeps those of
	// this one. With Lanes a download has one of its own else.
	Pool *Pool
	TLS  *tls.Config
	// Hellos may be shared with other transfers. nil remembers nothing from connection to connection.
	Hellos *transport.Hellos
	Log    *slog.Logger
	// Recorders are told of every event, one event at a time. Links are
	// sampled only if there is one.
	Recorders []transfer.Recorder
}

// writeSize is how many bytes of a request's body are worth a write to the sink.
const writeSize = 64 << 10

// Run downloads into the sink. The summary is also valid if there is an error;
// it lacks what only the program knows (version, algorithm). When ctx ends,
// Run ends with its cause and the outcome is interrupted.
func Run(ctx context.Context, o Options) (rundir.Summary, error) {
	d := newDownload(o)
	for i, of := range o.Links {
		l := newLink(i, of.Within(o.sessions()), o.Window)
		l.first().index, l.first().url, l.isSlowToAnswer = i, o.URL, o.IsSlowToAnswer
		d.links, d.connections = append(d.links, l), append(d.connections, l.first())
	}
	if o.Connections != nil && o.Pool == nil {
		d.Pool = newPool(forever)
		defer d.Pool.Close()
	}
	d.policy = newPolicy(d)
	d.TLS = d.policy.offer(o.TLS)
	sum, err := d.run(ctx)

	summary := rundir.Summary{
		URL:       o.URL.Redacted(),
		Size:      max(0, d.resource.Size),
		Outcome:   rundir.Complete,
		StartedAt: d.start.UnixNano(),
		Download:  d.end.Nanoseconds(),
		Warning:   d.warning,
		Links:     map[string]rundir.LinkSummary{},
	}
	for _, l := range d.links {
		summary.Links[l.Name] = l.summary()
	}
	if d.Slice != nil {
		summary.Size = max(0, d.part.Length)
	}
	if d.race == nil {
		summary.Resumed = d.resumed
	}
	done := &rundir.Done{Download: d.end.Nanoseconds()}
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
	d.record(time.Since(d.start), done)
	return summary, err
}

// download is one that goes on: what all its parts share. The parts are types of their
// own, each of which does one thing.
type download struct {
	Options
	policy    policy
	connector connector
	closer    closer
	asker     asker
	fetcher   fetcher
	hedger    hedger
	stealer   stealer
	estimates estimates
	monitor   monitor
	refusals  refusals
	watchdog  watchdog

	start  time.Time
	end    time.Duration
	sink   Sink
	window Window // sink, if it is one
	// waits is for how many seconds a reader can do without the next bytes, as far as
	// a plan knows.
	waits float64
	// ctx is that of the transfer, which cancel ends.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// mu orders everything below: decisions, accounts and events.
	mu    sync.Mutex
	links []*linkState
	// connections are those of all links, in the order in which they were added.
	connections []*connection
	resource    transport.Resource
	part        ranges.Range
	payload     *ranges.Payload // nil until the size is known
	// resumed is how many bytes the sink held from the beginning.
	resumed  quantity.Bytes
	requests int
	// ranged says that the server answered a range as such.
	ranged bool
	// repeats says that the server answered a second request: the URL works again.
	repeats bool
	// isSerial says that the server may serve one request after the other.
	isSerial bool
	// unranged counts how often links were told that they cannot, since bytes came.
	unranged int
	// race is set if the server can only send the resource as a whole.
	race *race
	// fetches are the requests for ranges that are being written.
	fetches sync.WaitGroup
	// origin is where the download began.
	origin origin
	// balance is the account of what arrived, and sessions are those that are open.
	balance  *transfer.Balance
	sessions []*session
	// warning is what is doubtful of a complete download.
	warning string
	// known is memory of decisions, which the next one overwrites: they are many.
	known []schedule.Link
}

// newDownload returns a download that knows no link yet.
func newDownload(o Options) *download {
	d := &download{Options: o, start: time.Now(), balance: o.Balance}
	if d.balance == nil {
		d.balance = new(transfer.Balance)
	}
	d.connector, d.closer, d.asker = connector{d}, closer{d}, asker{d: d}
	requests := fullRequestView{fullView{d}}
	d.fetcher, d.hedger = fetcher{d}, hedger{requests}
	d.stealer = stealer{view: requests, estimates: &d.estimates}
	d.estimates, d.monitor, d.refusals = estimates{d: d}, monitor{d}, refusals{d}
	d.watchdog = watchdog{d, throughput.Floor{Rate: o.LowestRate, Span: o.GiveUp}}
	return d
}

// run downloads the resource and returns its checksum.
func (d *download) run(ctx context.Context) (sum []byte, err error) {
	d.sink, err = d.Output()
	if err != nil {
		d.end = time.Since(d.start)
		return nil, err
	}
	d.window, _ = d.sink.(Window)
	if sink, ok := d.sink.(Continuer); ok && sink.Continues() {
		d.asker.earlier = sink
	}
	if err := d.transfer(ctx); err != nil {
		return nil, errors.Join(err, d.sink.Abort(errors.Is(err, transport.ErrTooLong)))
	}
	return d.sink.Commit()
}

// transfer receives all bytes.
func (d *download) transfer(ctx context.Context) error {
	ctx, d.cancel = context.WithCancelCause(ctx)
	d.ctx = ctx
	for _, l := range d.links {
		first := l.first() // Later the lock guards it.
		d.wg.Go(func() { d.connector.keep(ctx, first) })
		d.policy.watch(ctx, l)
	}
	d.policy.start()
	if d.window != nil {
		d.wg.Go(func() { d.follow(ctx) })
	}
	d.policy.supervise(ctx)
	if len(d.Recorders) > 0 {
		d.wg.Go(func() { d.sample(ctx) })
	}
	<-ctx.Done()
	d.wg.Wait()
	complete := context.Cause(ctx) == transfer.ErrComplete
	for _, c := range d.connections {
		if c.session != nil {
			c.measure()
			d.closer.leave(c, c.session, complete)
		}
	}
	for len(d.sessions) > 0 {
		d.watchdog.close(d.sessions[0])
	}
	if err := context.Cause(ctx); !complete {
		d.end = time.Since(d.start)
		return err
	}
	return nil
}

// target is what link c requests.
func (d *download) target(c *connection) transport.Target {
	header := d.Header
	if header != nil && !transport.IsSameOrigin(c.url, d.URL) {
		header = header.Clone()
		for _, name := range append([]string{"Authorization", "Cookie", "Host"}, d.Private...) {
			header.Del(name)
		}
	}
	return transport.Target{URL: c.url, Header: header, Bare: d.policy.isMinimal(), IsFile: d.asker.wantsFile()}
}

// mostPause is longestPause, or what leaves as much time to others.
func (d *download) mostPause() time.Duration {
	if d.GiveUp > 0 {
		return min(longestPause, d.GiveUp/2)
	}
	return longestPause
}

// limit is the offset before which bytes may be requested.
func (d *download) limit() quantity.Bytes {
	if d.window == nil {
		return math.MaxInt64
	}
	return d.window.Limit()
}

// follow asks links that had nothing to do again when the sink has room.
func (d *download) follow(ctx context.Context) {
	var failed <-chan error
	if sink, ok := d.sink.(Failer); ok {
		failed = sink.Failed()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-failed:
			d.cancel(sinkError{err})
			return
		case <-d.window.Grown():
		}
		d.mu.Lock()
		d.assign()
		d.fetcher.goOn()
		if d.race != nil {
			d.race.proceed()
		}
		d.mu.Unlock()
	}
}

// assign gives links that wait for work some, if there is any.
func (d *download) assign() {
	if d.payload == nil || d.ctx.Err() != nil {
		return
	}
	for _, c := range d.connections {
		if c.session != nil && (c.newest == nil || c.newest.isHeld) && !d.asker.isOpening(c) {
			d.fetcher.request(c)
		}
	}
}

// nextSize asks the scheduler, with all that is known at now. A connection of
// several decides for itself alone.
func (d *download) nextSize(c *connection, now time.Duration) quantity.Bytes {
	known := schedule.Known{Payload: d.part.Length, Links: d.known[:0]}
	if d.window != nil {
		known.Payload, known.InOrder = min(known.Payload, d.window.Size()), true
	}
	if d.Connections != nil {
		known.Links = append(known.Links, c.known(now))
		d.known = known.Links
		return d.Scheduler.Next(0, known)
	}
	for _, other := range d.connections {
		other.measure()
		known.Links = append(known.Links, other.known(now))
	}
	d.known = known.Links
	return d.Scheduler.Next(c.index, known)
}

func (d *download) completeIfAllArrived(now time.Duration) {
	if d.payload.Complete() {
		d.end = now
		d.cancel(transfer.ErrComplete)
	}
}

// sample records the state of every connected link at regular times.
func (d *download) sample(ctx context.Context) {
	regularly.Do(ctx, rundir.SampleInterval, func() {
		d.mu.Lock()
		now := time.Since(d.start)
		for _, l := range d.links {
			d.sampleLink(l, now)
		}
		d.mu.Unlock()
	})
}

// sampleLink records the state of a link, if it is connected.
func (d *download) sampleLink(l *linkState, now time.Duration) {
	var connected *connection
	inFlight := 0
	for _, one := range l.connections {
		if one.session == nil {
			continue
		}
		if connected == nil {
			connected = one
			one.measure()
		}
		inFlight += len(one.active)
	}
	if connected == nil {
		return
	}
	d.record(now, &rundir.Sample{
		Link:       l.Name,
		Received:   int64(l.Meter.Total()),
		Throughput: float64(l.Meter.Rate(now)),
		RTT:        connected.rtt.Last.Nanoseconds(),
		MinRTT:     connected.rtt.Min.Nanoseconds(),
		InFlight:   inFlight,
		Segments:   int64(connected.rtt.Segments),
		OutOfOrder: int64(connected.rtt.OutOfOrder),
	})
}

// fail ends the transfer; the first failure is the one that is reported.
func (d *download) fail(c *connection, err error) {
	d.cancel(fmt.Errorf("link %s: %w", c.link.Name, err))
}

func (d *download) record(t time.Duration, e rundir.Event) {
	for _, r := range d.Recorders {
		r.Record(t, e)
	}
}
