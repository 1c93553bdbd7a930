package download

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// raceLength is how many bytes a link must receive first to win a race.
const raceLength = 4 << 20

// unprovenEnd is the warning for a file that may be cut.
const unprovenEnd = "the file may be cut short: the server told no length, and the connection ended without a goodbye (TLS close_notify)"

// race is the download of a resource that the server sends only as a whole. All links request it,
// and the first that has raceLength bytes, or all, goes on alone. If that link fails, another race
// begins.
type race struct {
	d *download
	// runners are the requests that take part.
	runners map[*connection]*request
	winner  *connection
	// dethroned says that the winner's request was cancelled.
	dethroned bool
	// have are the bytes that the sink has.
	have *ranges.Set
	// keeps says that the race keeps bytes of earlier ranges. restarts says that the sink must
	// begin again, and restarted that it did.
	keeps, restarts, restarted bool
	// full says that the winner waits for room in the sink. grown receives when there is more.
	full  bool
	grown chan struct{}
}

// by reports whether the connection takes part.
func (rc *race) by(c *connection) bool {
	if rc == nil {
		return false
	}
	_, runs := rc.runners[c]
	return runs
}

// on reports whether the connection takes part on the session.
func (rc *race) on(c *connection, s *session) bool { return rc.by(c) && rc.runners[c].session == s }

// waits reports whether the connection waits for room in the sink.
func (rc *race) waits(c *connection) bool { return rc != nil && rc.full && rc.winner == c }

// proceed notes that the sink has more room.
func (rc *race) proceed() { notify(rc.grown) }

// keep notes that the sink has bytes of an earlier range.
func (rc *race) keep(part ranges.Range) {
	if rc != nil && rc.keeps {
		rc.have.Add(part)
	}
}

// startRace begins to download the resource as a whole. It gives up all requests for ranges.
// Written bytes stay if a validator or a checksum proves that the whole is of the same file.
func (d *download) startRace(why error) {
	d.race = &race{d: d, runners: map[*connection]*request{}, grown: make(chan struct{}, 1), have: ranges.NewSet()}
	d.balance.Expect(d.resource.Size)
	d.balance.Grant(d.watchdog.open())
	now := time.Since(d.start)
	for _, c := range d.connections {
		d.closer.abandon(c, slices.Clone(c.active), lost, now)
		c.link.refused = nil
	}
	if d.payload != nil && d.isProven() {
		d.race.keeps, d.race.have = true, d.payload.Have(d.part)
	}
	d.payload = nil
	if why == nil || errors.Is(why, transport.ErrNoRanges) && !d.ranged {
		d.Log.Warn("the server does not serve ranges, or gives no validator: only the fastest link is used")
	} else {
		d.Log.Warn("ranges cannot be used: only the fastest link is used from now on", "error", why)
	}
	if o := d.asker.whole; o != nil {
		d.race.begin(o.link, o.on, o)
	}
	for _, c := range d.connections {
		if c.usable(now) {
			d.race.enter(c)
		}
	}
}

// isProven reports whether a validator or a checksum proves that later bytes are of the same file.
func (d *download) isProven() bool { return d.resource.HasValidator() || d.Verified }

// enter makes a connection take part, if it may.
func (rc *race) enter(c *connection) {
	runs := slices.ContainsFunc(c.link.connections, rc.by)
	if c.isFirst() && rc.winner == nil && !runs && !c.session.draining && rc.canPayFor(len(rc.runners)+1) {
		rc.begin(c, c.session, nil)
	}
}

// begin requests the resource on a session, or takes the answer of an opening.
func (rc *race) begin(c *connection, s *session, opened *opening) {
	rc.d.requests++
	r := &request{Range: ranges.Range{Length: max(0, rc.d.resource.Size)}, id: rc.d.requests, session: s, proof: new(transport.Proof)}
	if opened != nil {
		r.proof = opened.proof
	}
	ctx, cancel := context.WithCancel(transport.WithProof(rc.d.ctx, r.proof))
	r.cancel = cancel
	if opened != nil {
		r.cancel = func() { cancel(); opened.drop() }
	}
	rc.runners[c] = r
	c.link.Requests++
	s.requests++
	s.active++
	now := time.Since(rc.d.start)
	s.heardAt = now
	c.link.Meter.Start(now)
	c.pace.Begin(now, c.rtt.Min)
	rc.d.record(now, &rundir.Request{Link: c.link.Name, ID: r.id, Length: int64(r.Length)})
	target, resource := rc.d.target(c), rc.d.resource // The resource's size may become known meanwhile.
	rc.d.wg.Go(func() {
		defer r.cancel()
		err := rc.receiveWhole(ctx, c, r, resource.Size, func() (*transport.WholeBody, error) {
			if opened != nil {
				return opened.body.(*transport.WholeBody), nil
			}
			return s.Whole(ctx, target, resource)
		})
		rc.ended(ctx, c, r, err)
	})
}

// canPayFor reports whether the balance allows so many links to receive the beginning. One always
// may.
func (rc *race) canPayFor(runners int) bool {
	lead := quantity.Bytes(raceLength)
	if size := rc.d.resource.Size; size >= 0 {
		lead = min(lead, size)
	}
	return runners == 1 || rc.d.balance.CanPay(quantity.Bytes(runners)*lead, rc.d.watchdog.open())
}

// ended decides what follows when a request has ended.
func (rc *race) ended(ctx context.Context, c *connection, r *request, err error) {
	rc.d.mu.Lock()
	defer rc.d.mu.Unlock()
	now := time.Since(rc.d.start)
	s := r.session
	s.active--
	defer rc.d.closer.settle(c, s)
	delete(rc.runners, c)
	c.pace.End(now)
	wasted := r.received - r.used
	end := &rundir.End{Link: c.link.Name, ID: r.id, Bytes: int64(r.used), Wasted: int64(wasted), Outcome: rundir.Complete}
	won := rc.winner == c
	if won {
		rc.winner = nil
	}
	c.link.Wasted += wasted
	c.link.raced += wasted
	switch {
	case err == nil && won:
		rc.d.record(now, end)
		rc.d.end = now
		if rc.d.resource.Size < 0 {
			rc.d.resource.Size = r.received
		}
		rc.d.cancel(transfer.ErrComplete)
		return
	case ctx.Err() != nil || err == nil:
		end.Outcome = rundir.Cancelled
	default:
		end.Outcome, end.Error = rundir.Failed, err.Error()
	}
	rc.d.record(now, end)
	if end.Outcome == rundir.Failed {
		rc.d.fetcher.trouble(c, s, err)
	}
}

// receiveWhole receives the resource. It writes to the sink once the connection has won.
func (rc *race) receiveWhole(ctx context.Context, c *connection, r *request, size quantity.Bytes, answer func() (*transport.WholeBody, error)) error {
	body, err := answer()
	if err != nil {
		return err
	}
	defer body.Close()
	var lead []byte
	memory := block.Get()
	defer block.Put(memory)
	won := false
	for {
		n, err := body.Read(memory[:])
		// A session may break between the last byte and HTTP/2's END_STREAM.
		ended := err == io.EOF || err != nil && size >= 0 && r.received+quantity.Bytes(n) == size
		if err != nil && !ended {
			return err
		}
		rc.d.mu.Lock()
		r.received += quantity.Bytes(n)
		if n > 0 {
			rc.d.fetcher.arrived(c, r, quantity.Bytes(n), time.Since(rc.d.start))
		}
		offset := r.received - quantity.Bytes(n)
		data := memory[:n]
		if !won {
			lead = append(lead, data...)
			offset, data = 0, lead
			won = rc.win(c, ended, len(lead))
		}
		rc.d.mu.Unlock()
		if won {
			lead = nil
			if err := rc.deliver(ctx, r, data, offset); err != nil {
				return err
			}
			if rc.hasAll() {
				return nil
			}
		}
		if ended {
			if !won {
				return nil
			}
			if body.Unproven() {
				rc.warn(c, r.received)
			}
			return rc.resize(r.received)
		}
	}
}

// warn warns of a file that may be cut, unless a checksum will show it.
func (rc *race) warn(c *connection, bytes quantity.Bytes) {
	if rc.d.Verified || rc.d.resource.SHA256 != nil {
		return
	}
	rc.d.mu.Lock()
	rc.d.warning = unprovenEnd
	rc.d.mu.Unlock()
	rc.d.Log.Warn(unprovenEnd, "link", c.link.Name, "bytes", bytes)
}

// win reports whether the connection has won: no other one has, and it has enough bytes.
func (rc *race) win(c *connection, ended bool, bytes int) bool {
	alone := len(rc.d.connections) == 1
	if rc.winner != nil || !ended && !alone && bytes < raceLength {
		return false
	}
	rc.winner, rc.dethroned = c, false
	for other, r := range rc.runners {
		if other != c {
			r.cancel()
		}
	}
	return true
}

// dethrone starts another race if the winner went silent. It goes on waiting if no other link is
// usable, or if a program has read bytes that another answer may not repeat.
func (rc *race) dethrone(now time.Duration) {
	winner := rc.winner
	if winner == nil || !winner.suspect || rc.dethroned || rc.d.window != nil && !rc.d.isProven() && rc.have.Bytes() > 0 {
		return
	}
	for _, c := range rc.d.connections {
		if c.usable(now) {
			rc.d.fetcher.failedOver(winner, c, rc.have.Bytes(), stalled, now)
			rc.dethroned = true
			rc.runners[winner].cancel()
			return
		}
	}
}

// deliver writes the wanted part of the data when the sink has room.
func (rc *race) deliver(ctx context.Context, r *request, data []byte, offset quantity.Bytes) error {
	if err := rc.restart(); err != nil {
		return err
	}
	for _, missing := range rc.missing(offset, offset+quantity.Bytes(len(data))) {
		if missing.Length < 0 {
			return sinkError{errors.New("the connection was lost, and the server cannot continue where it was")}
		}
		for from := missing.Offset; from < missing.End(); {
			room := min(missing.End(), max(rc.d.limit(), from))
			if room == from {
				if err := rc.awaitRoom(ctx); err != nil {
					return err
				}
				continue
			}
			if _, err := rc.d.sink.WriteAt(data[from-offset:room-offset], int64(from)); err != nil {
				return sinkError{err}
			}
			r.used += room - from
			from = room
		}
		rc.d.mu.Lock()
		rc.have.Add(missing)
		rc.d.mu.Unlock()
	}
	return nil
}

// restart waits until no range is being written, and lets the sink begin again if it must.
func (rc *race) restart() error {
	rc.d.fetches.Wait()
	rc.d.mu.Lock()
	restarts, resource := rc.restarts && !rc.restarted, rc.d.resource
	rc.restarted = rc.restarted || restarts
	rc.d.mu.Unlock()
	if restarts {
		if err := rc.d.sink.(Restarter).Restart(resource); err != nil {
			return sinkError{err}
		}
	}
	return nil
}

// missing returns the wanted bytes from offset to end. If nothing proves that the sink's bytes are
// of the same file, these are all.
func (rc *race) missing(offset, end quantity.Bytes) []ranges.Range {
	rc.d.mu.Lock()
	defer rc.d.mu.Unlock()
	offset = max(offset, rc.d.part.Offset)
	if rc.d.resource.Size >= 0 {
		end = min(end, rc.d.part.End())
	}
	wanted := ranges.NewSet(ranges.Range{Offset: offset, Length: end - offset})
	if rc.d.isProven() {
		for _, r := range rc.have.Ranges() {
			wanted.Remove(r)
		}
		return wanted.Ranges()
	}
	if rc.d.window != nil && rc.have.Below(end) > rc.have.Below(offset) {
		return []ranges.Range{{Length: -1}}
	}
	return wanted.Ranges()
}

// hasAll reports whether the sink has all bytes, though the answer goes on.
func (rc *race) hasAll() bool {
	rc.d.mu.Lock()
	defer rc.d.mu.Unlock()
	return rc.keeps && rc.d.resource.Size >= 0 && rc.have.Below(rc.d.part.End())-rc.have.Below(rc.d.part.Offset) == rc.d.part.Length
}

// awaitRoom waits until the sink has more room.
func (rc *race) awaitRoom(ctx context.Context) error {
	rc.setFull(true)
	defer rc.setFull(false)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rc.grown:
		return nil
	}
}

func (rc *race) setFull(full bool) {
	rc.d.mu.Lock()
	defer rc.d.mu.Unlock()
	rc.full = full
}

// resize tells the sink the size, if it was unknown.
func (rc *race) resize(size quantity.Bytes) error {
	if rc.d.resource.Size >= 0 {
		return nil
	}
	if sink, ok := rc.d.sink.(Sizer); ok {
		if err := sink.Resize(size); err != nil {
			return sinkError{err}
		}
	}
	return nil
}
