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

// raceLength is how many bytes decide which link is the fastest.
const raceLength = 4 << 20

// unprovenEnd is said of a file that looks whole, and may not be.
const unprovenEnd = "the file may be cut short: the server told no length, and the connection ended without a goodbye (TLS close_notify)"

// race is the download of a resource that comes only as a whole: all links
// request it, and the first that has raceLength bytes or all goes on alone.
// If it fails, there is another race, from the beginning.
type race struct {
	// runners are the requests that take part.
	runners map[*connection]*request
	winner  *connection
	// dethroned says that the winner was told to end.
	dethroned bool
	// have is what the sink has.
	have *ranges.Set
	// keeps says that it began with bytes that came as ranges. Restarts says that the
	// sink is to begin again, and restarted that it did.
	keeps, restarts, restarted bool
	// full says that the winner waits for the sink, and grown receives when
	// that has more room.
	full  bool
	grown chan struct{}
}

// by reports whether the link takes part.
func (r *race) by(c *connection) bool {
	if r == nil {
		return false
	}
	_, runs := r.runners[c]
	return runs
}

// on reports whether the link takes part on the session.
func (r *race) on(c *connection, s *session) bool { return r.by(c) && r.runners[c].session == s }

// waits reports whether the link waits for the sink.
func (r *race) waits(c *connection) bool { return r != nil && r.full && r.winner == c }

// proceed says that the sink has more room.
func (r *race) proceed() { notify(r.grown) }

// keep says that the sink has bytes that came as a range.
func (r *race) keep(part ranges.Range) {
	if r != nil && r.keeps {
		r.have.Add(part)
	}
}

// startRace begins to request the resource as a whole. No range that was
// requested is wanted any more, on whatever session. What was written stays if its
// validator, or a checksum, will prove that it is the same.
func (d *download) startRace(why error) {
	d.race = &race{runners: map[*connection]*request{}, grown: make(chan struct{}, 1), have: ranges.NewSet()}
	now := time.Since(d.start)
	for _, c := range d.connections {
		d.abandon(c, slices.Clone(c.active), lost, now)
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
	for _, c := range d.connections {
		if c.usable(now) {
			d.enter(c)
		}
	}
}

// isProven reports whether bytes that come later are known to be of the same file.
func (d *download) isProven() bool { return d.resource.HasValidator() || d.Verified }

// enter lets a link take part.
func (d *download) enter(c *connection) {
	s := c.session
	if !c.isFirst() || d.race.winner != nil || d.race.by(c) || s.draining {
		return
	}
	d.requests++
	r := &request{Range: ranges.Range{Length: max(0, d.resource.Size)}, id: d.requests, session: s}
	ctx, cancel := context.WithCancel(d.ctx)
	r.cancel = cancel
	d.race.runners[c] = r
	c.link.Requests++
	s.requests++
	s.active++
	now := time.Since(d.start)
	s.heardAt = now
	c.link.Meter.Start(now)
	c.pace.Begin(now, c.rtt.Min)
	d.record(now, &rundir.Request{Link: c.link.Name, ID: r.id, Length: int64(r.Length)})
	target, resource := d.target(c), d.resource // Whose size may be learnt meanwhile.
	d.wg.Go(func() {
		defer cancel()
		d.run1(ctx, c, r, target, resource)
	})
}

// run1 receives the resource as a whole on one link.
func (d *download) run1(ctx context.Context, c *connection, r *request, target transport.Target, resource transport.Resource) {
	err := d.receiveWhole(ctx, c, r, target, resource)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Since(d.start)
	s := r.session
	s.active--
	defer d.settle(c, s)
	delete(d.race.runners, c)
	c.pace.End(now)
	wasted := r.received - r.used
	end := &rundir.End{Link: c.link.Name, ID: r.id, Bytes: int64(r.used), Wasted: int64(wasted), Outcome: rundir.Complete}
	won := d.race.winner == c
	if won {
		d.race.winner = nil
	}
	c.link.Wasted += wasted
	c.link.raced += wasted
	switch {
	case err == nil && won:
		d.record(now, end)
		d.end = now
		if d.resource.Size < 0 {
			d.resource.Size = r.received
		}
		d.cancel(transfer.ErrComplete)
		return
	case ctx.Err() != nil || err == nil:
		end.Outcome = rundir.Cancelled
	default:
		end.Outcome, end.Error = rundir.Failed, err.Error()
	}
	d.record(now, end)
	if end.Outcome == rundir.Failed {
		d.trouble(c, s, err)
	}
}

// receiveWhole receives the resource; it writes once the link has won.
func (d *download) receiveWhole(ctx context.Context, c *connection, r *request, target transport.Target, resource transport.Resource) error {
	body, err := r.session.Whole(ctx, target, resource)
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
		ended := err == io.EOF
		if err != nil && !ended {
			return err
		}
		d.mu.Lock()
		r.received += quantity.Bytes(n)
		if n > 0 {
			d.arrived(c, r, quantity.Bytes(n), time.Since(d.start))
		}
		offset := r.received - quantity.Bytes(n)
		data := memory[:n]
		if !won {
			lead = append(lead, data...)
			offset, data = 0, lead
			won = d.win(c, ended, len(lead))
		}
		d.mu.Unlock()
		if won {
			lead = nil
			if err := d.deliver(ctx, r, data, offset); err != nil {
				return err
			}
			if d.hasAll() {
				return nil
			}
		}
		if ended {
			if !won {
				return nil
			}
			if body.Unproven() {
				d.doubt(c, r.received)
			}
			return d.resize(r.received)
		}
	}
}

// doubt warns of a file that may have been cut, unless a checksum will tell.
func (d *download) doubt(c *connection, bytes quantity.Bytes) {
	if d.Verified || d.resource.SHA256 != nil {
		return
	}
	d.mu.Lock()
	d.warning = unprovenEnd
	d.mu.Unlock()
	d.Log.Warn(unprovenEnd, "link", c.link.Name, "bytes", bytes)
}

// win reports whether the link has won: nobody else has, and it has enough.
func (d *download) win(c *connection, ended bool, bytes int) bool {
	alone := len(d.connections) == 1
	if d.race.winner != nil || !ended && !alone && bytes < raceLength {
		return false
	}
	d.race.winner, d.race.dethroned = c, false
	for other, r := range d.race.runners {
		if other != c {
			r.cancel()
		}
	}
	return true
}

// dethrone lets the others begin again where the winner went silent. It goes
// on waiting where nobody else could, or where what was read cannot be sent
// again.
func (d *download) dethrone(now time.Duration) {
	winner := d.race.winner
	if winner == nil || !winner.suspect || d.race.dethroned || d.window != nil && !d.isProven() && d.race.have.Bytes() > 0 {
		return
	}
	for _, c := range d.connections {
		if c.usable(now) {
			d.failedOver(winner, c, d.race.have.Bytes(), stalled, now)
			d.race.dethroned = true
			d.race.runners[winner].cancel()
			return
		}
	}
}

// deliver writes the part of the data that is wanted, as the sink has room.
func (d *download) deliver(ctx context.Context, r *request, data []byte, offset quantity.Bytes) error {
	if err := d.restart(); err != nil {
		return err
	}
	for _, missing := range d.missing(offset, offset+quantity.Bytes(len(data))) {
		if missing.Length < 0 {
			return sinkError{errors.New("the connection was lost, and the server cannot continue where it was")}
		}
		for from := missing.Offset; from < missing.End(); {
			room := min(missing.End(), max(d.limit(), from))
			if room == from {
				if err := d.awaitRoom(ctx); err != nil {
					return err
				}
				continue
			}
			if _, err := d.sink.WriteAt(data[from-offset:room-offset], int64(from)); err != nil {
				return sinkError{err}
			}
			r.used += room - from
			from = room
		}
		d.mu.Lock()
		d.race.have.Add(missing)
		d.mu.Unlock()
	}
	return nil
}

// restart waits until no range is written any more, and lets the sink begin again if
// it has to.
func (d *download) restart() error {
	d.fetches.Wait()
	d.mu.Lock()
	restarts, resource := d.race.restarts && !d.race.restarted, d.resource
	d.race.restarted = d.race.restarted || restarts
	d.mu.Unlock()
	if restarts {
		if err := d.sink.(Restarter).Restart(resource); err != nil {
			return sinkError{err}
		}
	}
	return nil
}

// missing are the bytes of those that are wanted. Where nothing proves that what the
// sink has is the same, these are all.
func (d *download) missing(offset, end quantity.Bytes) []ranges.Range {
	d.mu.Lock()
	defer d.mu.Unlock()
	offset = max(offset, d.part.Offset)
	if d.resource.Size >= 0 {
		end = min(end, d.part.End())
	}
	wanted := ranges.NewSet(ranges.Range{Offset: offset, Length: end - offset})
	if d.isProven() {
		for _, r := range d.race.have.Ranges() {
			wanted.Remove(r)
		}
		return wanted.Ranges()
	}
	if d.window != nil && d.race.have.Below(end) > d.race.have.Below(offset) {
		return []ranges.Range{{Length: -1}}
	}
	return wanted.Ranges()
}

// hasAll reports whether nothing is missing, though the answer goes on: the sink had
// the rest.
func (d *download) hasAll() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.race.keeps && d.resource.Size >= 0 && d.race.have.Below(d.part.End())-d.race.have.Below(d.part.Offset) == d.part.Length
}

// awaitRoom waits until the sink has more room.
func (d *download) awaitRoom(ctx context.Context) error {
	d.setFull(true)
	defer d.setFull(false)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.race.grown:
		return nil
	}
}

func (d *download) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.race.full = full
}

// resize tells the sink a size that was unknown.
func (d *download) resize(size quantity.Bytes) error {
	if d.resource.Size >= 0 {
		return nil
	}
	if sink, ok := d.sink.(Sizer); ok {
		if err := sink.Resize(size); err != nil {
			return sinkError{err}
		}
	}
	return nil
}
