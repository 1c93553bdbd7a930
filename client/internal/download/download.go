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
	// Rescue lets other links take over from a link that fails or falls behind. Without it
	// the engine works as published (see policy).
	Rescue bool
	// GiveUp is how long no new byte may arrive on any link before the download
	// fails; 0 waits for ever.
	GiveUp time.Duration
	// Balance, if set, counts what the caller has already received of the file.
	Balance *transfer.Balance
	// LowestRate is the least total rate of all links, averaged over GiveUp. A download below
	// it fails; 0 is no limit.
	LowestRate quantity.Rate
	// Connections lets links have several connections, with Rescue; nil is one each.
	Connections *transfer.Connections
	// Output opens what the bytes are written to, before anything else.
	Output func() (Sink, error)
	// Verified says that Commit compares the whole file with a checksum. Then the server need
	// not give a validator.
	Verified bool
	// Header is sent with every request. After a redirect to another origin (RFC 6454) the
	// client leaves out the fields of Private, Authorization, Cookie and Host.
	Header  http.Header
	Private []string
	// Redirects is how many redirects the client follows in a row: 0 for usualRedirects,
	// NoRedirects for none.
	Redirects int
	// Resource is what the URL stands for, if the caller knows it. Else a link asks the server.
	Resource *transport.Resource
	// Part is the part of the resource to download; an empty one is all of it. Slice replaces
	// Part where the size of the resource is not known.
	Part  ranges.Range
	Slice *Slice
	// IsSlowToAnswer says that the caller knows the server to take long for each answer.
	IsSlowToAnswer bool
	// Pool, if set, has connections of earlier downloads, and keeps those of this one. With
	// Connections and no Pool, a download makes a pool of its own.
	Pool *Pool
	TLS  *tls.Config
	// Hellos may be shared with other transfers. nil remembers nothing from connection to connection.
	Hellos *transport.Hellos
	Log    *slog.Logger
	// Recorders receive every event, one event at a time. The engine samples the links only
	// if there is a recorder.
	Recorders []transfer.Recorder
}

// writeSize is how many bytes of a body the engine collects for one write to the sink.
const writeSize = 64 << 10

// Run downloads into the sink. The summary is valid in case of an error, too; the caller
// adds the version and the algorithm. When ctx ends, Run ends with its cause, and the
// outcome is interrupted.
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

// download is the state of one download, which all parts of the engine share. Each part is a
// type of its own.
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
	// waits is for how many seconds the reader has enough bytes, as far as a plan knows.
	waits float64
	// ctx is that of the transfer, which cancel ends.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// mu guards everything below: decisions, counts and events happen one at a time.
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
	// ranged says that the server has answered a request for a range with that range.
	ranged bool
	// repeats says that the server answered a second request: the URL works more than once.
	repeats bool
	// isSerial says that the server seems to serve one request after the other.
	isSerial bool
	// unranged counts the answers without a range since new bytes arrived.
	unranged int
	// race is set if the server sends the resource only as a whole.
	race *race
	// fetches are the requests for ranges that are being written.
	fetches sync.WaitGroup
	// origin is the server and URL of the first answer.
	origin origin
	// balance counts the bytes that arrived, and sessions are the open ones.
	balance  *transfer.Balance
	sessions []*session
	// warning says why a complete download may be wrong.
	warning string
	// known is memory that decisions use again, so that they allocate nothing.
	known []schedule.Link
}

// newDownload returns a download without links.
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

// target is what a connection requests.
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

// mostPause is how long an only answer may pause: longestPause, or half of GiveUp, so that
// other requests have the other half.
func (d *download) mostPause() time.Duration {
	if d.GiveUp > 0 {
		return min(longestPause, d.GiveUp/2)
	}
	return longestPause
}

// limit is the offset from which the sink has no room: nothing behind it is requested.
func (d *download) limit() quantity.Bytes {
	if d.window == nil {
		return math.MaxInt64
	}
	return d.window.Limit()
}

// follow gives idle connections work when the sink has more room.
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

// assign gives idle connections work, if there is any.
func (d *download) assign() {
	if d.payload == nil || d.ctx.Err() != nil {
		return
	}
	now := time.Since(d.start)
	for _, c := range d.connections {
		isFree := c.newest == nil || c.newest.isHeld || c.isUnanswered(now)
		if c.session != nil && isFree && !d.asker.isOpening(c) {
			d.fetcher.request(c)
		}
	}
}

// nextSize asks the scheduler how many bytes a connection should request. A scheduler of
// links with several connections is told only of that connection.
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

// fail ends the transfer. Run reports the first failure.
func (d *download) fail(c *connection, err error) {
	d.cancel(fmt.Errorf("link %s: %w", c.link.Name, err))
}

func (d *download) record(t time.Duration, e rundir.Event) {
	for _, r := range d.Recorders {
		r.Record(t, e)
	}
}
