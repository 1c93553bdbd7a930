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
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transport"
)

// Link is a way to the server.
type Link struct {
	Name, Device string
	// Bandwidth is B_x in bytes per second; if 0, it is the highest
	// throughput seen.
	Bandwidth float64
	// Dial connects to a TCP address through the link.
	Dial func(ctx context.Context, address string) (link.Socket, error)
}

// Options says what to download and how.
type Options struct {
	URL       *url.URL
	Links     []Link
	Scheduler schedule.Scheduler
	// Overlap is the part of a link's newest request that must have arrived
	// before the link's next request is issued: above 0 to 1. The thesis
	// uses 0.6 (section 4.2.2).
	Overlap float64
	// Window is the time over which throughput is averaged.
	Window time.Duration
	// Output opens what the bytes are written to, before anything else.
	Output func() (Sink, error)
	// Verified says that Commit compares the whole with a checksum, so that
	// no validator is needed.
	Verified bool
	// Header is sent with every request.
	Header http.Header
	// Resource is what the URL stands for, if that is known; else a link
	// asks first.
	Resource *transport.Resource
	// Part is the part of the resource to download; if it is empty, all.
	Part ranges.Range
	TLS  *tls.Config
	Log  *slog.Logger
	// Recorders are told of every event, one event at a time. Links are
	// sampled only if there is one.
	Recorders []Recorder
}

// A Recorder takes the events of a download; t is the time since its start.
type Recorder interface {
	Record(t time.Duration, e rundir.Event)
}

// blockSize is the unit in which a request's body is written to the file.
const blockSize = 512 << 10

// errComplete ends a transfer in which every byte has arrived.
var errComplete = errors.New("complete")

// Run downloads into the sink. The summary is also valid if there is an error;
// it lacks what only the program knows (version, algorithm). When ctx ends,
// Run ends with its cause and the outcome is interrupted.
func Run(ctx context.Context, o Options) (rundir.Summary, error) {
	d := &download{Options: o, start: time.Now()}
	d.blocks.New = func() any { return new([blockSize]byte) }
	for _, l := range o.Links {
		d.links = append(d.links, &linkState{Link: l, meter: throughput.NewMeter(o.Window)})
	}
	sum, err := d.run(ctx)

	summary := rundir.Summary{
		URL:       o.URL.Redacted(),
		Size:      d.resource.Size,
		Outcome:   rundir.Complete,
		StartedAt: d.start.UnixNano(),
		Download:  d.end.Nanoseconds(),
		Links:     map[string]rundir.LinkSummary{},
	}
	for _, l := range d.links {
		summary.Links[l.Name] = l.summary()
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

type download struct {
	Options
	start  time.Time
	end    time.Duration
	sink   Sink
	window Window // sink, if it is one
	blocks sync.Pool
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// mu orders everything below: decisions, accounts and events.
	mu       sync.Mutex
	links    []*linkState
	asked    bool // a link is asking for the size, or has
	resource transport.Resource
	part     ranges.Range
	payload  *ranges.Payload // nil until the size is known
	requests int
}

// run downloads the resource and returns its checksum.
func (d *download) run(ctx context.Context) (sum []byte, err error) {
	d.sink, err = d.Output()
	if err != nil {
		d.end = time.Since(d.start)
		return nil, err
	}
	d.window, _ = d.sink.(Window)
	if err := d.transfer(ctx); err != nil {
		return nil, errors.Join(err, d.sink.Abort(errors.Is(err, transport.ErrTooLong)))
	}
	return d.sink.Commit()
}

// transfer receives all bytes.
func (d *download) transfer(ctx context.Context) error {
	ctx, d.cancel = context.WithCancelCause(ctx)
	for _, l := range d.links {
		d.wg.Go(func() { d.open(ctx, l) })
	}
	if d.window != nil {
		d.wg.Go(func() { d.follow(ctx) })
	}
	if len(d.Recorders) > 0 {
		d.wg.Go(func() { d.sample(ctx) })
	}
	<-ctx.Done()
	d.wg.Wait()
	for _, l := range d.links {
		if l.conn != nil {
			l.measure()
			l.conn.Close()
		}
	}
	if err := context.Cause(ctx); err != errComplete {
		d.end = time.Since(d.start)
		return err
	}
	return nil
}

// open connects a link and starts its first request. The link that is ready
// first asks for the size on behalf of all.
func (d *download) open(ctx context.Context, l *linkState) {
	if err := d.connect(ctx, l); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.payload != nil && d.payload.Free(math.MaxInt64) == 0 {
			d.Log.Warn("link is not needed any more", "link", l.Name, "error", err)
			return
		}
		d.fail(l, err)
		return
	}

	d.mu.Lock()
	ask := !d.asked
	d.asked = true
	if d.payload != nil && l.requests == 0 {
		d.request(ctx, l)
	}
	d.mu.Unlock()
	if !ask {
		return
	}

	var resource transport.Resource
	var err error
	if d.Resource != nil {
		resource = *d.Resource
	} else {
		resource, err = l.conn.Head(ctx, d.Header)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		err = d.begin(l, resource)
	}
	if err != nil {
		d.fail(l, err)
		return
	}
	for _, other := range d.links {
		if other.conn != nil {
			d.request(ctx, other)
		}
	}
}

// connect makes the link ready for requests.
func (d *download) connect(ctx context.Context, l *linkState) error {
	started := time.Since(d.start)
	socket, err := l.Dial(ctx, transport.Address(d.URL))
	if err != nil {
		return err
	}
	connected := time.Since(d.start)
	conn, err := transport.Open(ctx, socket, d.TLS, d.URL)
	if err != nil {
		return err
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	ready := time.Since(d.start)
	l.conn, l.socket = conn, socket
	l.measure()
	d.record(ready, &rundir.Connected{
		Link:     l.Name,
		TCP:      (connected - started).Nanoseconds(),
		TLS:      (ready - connected).Nanoseconds(),
		RTT:      l.rtt.Last.Nanoseconds(),
		Protocol: conn.Protocol,
	})
	return nil
}

// begin prepares for the resource that the server announced on link l.
func (d *download) begin(l *linkState, resource transport.Resource) error {
	d.resource = resource
	d.record(time.Since(d.start), &rundir.Size{Bytes: resource.Size, ETag: resource.ETag, Link: l.Name})
	if resource.ETag == "" {
		d.Log.Warn("the server gives no strong ETag: a change of the file during the download may go unnoticed", "last-modified", resource.LastModified)
	}
	d.part = d.Part
	if d.part.Length == 0 {
		d.part = ranges.Range{Length: resource.Size}
	}
	if d.part.Offset < 0 || d.part.Length < 0 || d.part.End() > resource.Size {
		return fmt.Errorf("bytes %d-%d are not in the resource of %d bytes", d.part.Offset, d.part.End()-1, resource.Size)
	}
	have, err := d.sink.Begin(resource, d.part)
	if err != nil {
		return err
	}
	d.payload = ranges.NewPayload(d.part, have...)
	d.completeIfAllArrived(time.Since(d.start))
	return nil
}

// request issues the link's next request, if the scheduler wants one.
func (d *download) request(ctx context.Context, l *linkState) {
	now := time.Since(d.start)
	assigned, ok := d.payload.Take(d.nextSize(l, now), d.limit())
	if !ok {
		return
	}
	if d.requests > 0 && !d.resource.HasValidator() && !d.Verified {
		d.fail(l, errors.New("the server gives neither a strong ETag nor Last-Modified, so that nothing proves that several ranges are of one file: give its checksum, or use the algorithm single"))
		return
	}
	d.requests++
	r := &request{Range: assigned, id: d.requests}
	l.newest = r
	l.requests++
	l.inFlight++
	l.expected += assigned.Length
	l.await(d.Overlap)
	l.meter.Start(now)
	d.record(now, &rundir.Request{
		Link:   l.Name,
		ID:     r.id,
		Offset: r.Offset,
		Length: r.Length,
		Rate:   8 * l.meter.Rate(now),
	})
	d.wg.Go(func() { d.fetch(ctx, l, r) })
}

// limit is the offset before which bytes may be requested.
func (d *download) limit() int64 {
	if d.window == nil {
		return math.MaxInt64
	}
	return d.window.Limit()
}

// follow asks links that had nothing to do again when the sink has room.
func (d *download) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.window.Grown():
		}
		d.mu.Lock()
		for _, l := range d.links {
			if d.payload != nil && l.conn != nil && l.newest == nil {
				d.request(ctx, l)
			}
		}
		d.mu.Unlock()
	}
}

// nextSize asks the scheduler, with all that is known at now.
func (d *download) nextSize(l *linkState, now time.Duration) int64 {
	known := schedule.Known{Payload: d.part.Length, Links: make([]schedule.Link, len(d.links))}
	if d.window != nil {
		known.Payload = min(known.Payload, d.window.Size())
	}
	x := 0
	for i, other := range d.links {
		if other == l {
			x = i
		}
		other.measure()
		known.Links[i] = other.known(now)
	}
	return d.Scheduler.Next(x, known)
}

// fetch receives one request to its end.
func (d *download) fetch(ctx context.Context, l *linkState, r *request) {
	err := d.receive(ctx, l, r)
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.complete() {
		if errors.Is(err, transport.ErrTooLong) {
			d.fail(l, err)
		}
		return
	}
	l.inFlight--
	l.wasted += r.received
	end := &rundir.End{Link: l.Name, ID: r.id, Bytes: r.received, Outcome: rundir.Cancelled}
	if ctx.Err() == nil {
		err = fmt.Errorf("bytes %d-%d: %w", r.Offset, r.End()-1, err)
		end.Outcome, end.Error = rundir.Failed, err.Error()
		d.fail(l, err)
	}
	d.record(time.Since(d.start), end)
}

// receive copies the body of a request to the file. Each byte counts as
// arrived when it was read, and the last ones when they are written.
func (d *download) receive(ctx context.Context, l *linkState, r *request) error {
	body, err := l.conn.Get(ctx, d.Header, d.resource, r.Range)
	if err != nil {
		return err
	}
	defer body.Close()
	block := d.blocks.Get().(*[blockSize]byte)
	defer d.blocks.Put(block)
	filled, offset := 0, r.Offset
	for {
		n, err := body.Read(block[filled:])
		filled += n
		if filled == blockSize || offset+int64(filled) == r.End() {
			if _, err := d.sink.WriteAt(block[:filled], offset); err != nil {
				return err
			}
			offset += int64(filled)
			filled = 0
		}
		if n > 0 {
			d.progress(ctx, l, r, int64(n))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// progress takes account of bytes that arrived, and issues the link's next
// request when enough of its newest has.
func (d *download) progress(ctx context.Context, l *linkState, r *request, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Since(d.start)
	if r.received == 0 {
		d.record(now, &rundir.FirstByte{Link: l.Name, ID: r.id})
	}
	r.received += bytes
	l.last = now
	l.meter.Add(now, bytes)
	l.expected -= bytes
	if r.complete() {
		l.inFlight--
		d.record(now, &rundir.End{Link: l.Name, ID: r.id, Bytes: r.received, Outcome: rundir.Complete})
		d.payload.Arrived(r.Range)
		d.completeIfAllArrived(now)
	}
	if r == l.newest && float64(r.received) >= d.Overlap*float64(r.Length) {
		l.newest = nil
		d.request(ctx, l)
	}
	l.await(d.Overlap)
}

func (d *download) completeIfAllArrived(now time.Duration) {
	if d.payload.Complete() {
		d.end = now
		d.cancel(errComplete)
	}
}

// sample records the state of every connected link at regular times.
func (d *download) sample(ctx context.Context) {
	ticker := time.NewTicker(rundir.SampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		d.mu.Lock()
		now := time.Since(d.start)
		for _, l := range d.links {
			if l.conn == nil {
				continue
			}
			l.measure()
			d.record(now, &rundir.Sample{
				Link:       l.Name,
				Received:   l.meter.Total(),
				Throughput: 8 * l.meter.Rate(now),
				RTT:        l.rtt.Last.Nanoseconds(),
				MinRTT:     l.rtt.Min.Nanoseconds(),
				InFlight:   l.inFlight,
			})
		}
		d.mu.Unlock()
	}
}

// fail ends the transfer; the first failure is the one that is reported.
func (d *download) fail(l *linkState, err error) {
	d.cancel(fmt.Errorf("link %s: %w", l.Name, err))
}

func (d *download) record(t time.Duration, e rundir.Event) {
	for _, r := range d.Recorders {
		r.Record(t, e)
	}
}
