package download

import (
	"errors"
	"log/slog"
	"slices"
	"time"

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

// race is the download of a resource that the server sends only as a whole. All links request it, and the first that
// has raceLength bytes, or all, goes on alone. If that link fails, another race begins.
type race struct {
	d *download
	// runners are the requests that take part.
	runners map[*connection]*request
	winner  *connection
	// dethroned says that the winner's request was cancelled.
	dethroned bool
	// have are the bytes that the sink has.
	have *ranges.Set
	// keeps says that the race keeps bytes of earlier ranges. restarts says that the sink must begin again.
	keeps, restarts bool
	// full says that the winner waits for room in the sink. grown receives when there is more.
	full  bool
	grown chan struct{}
}

func (rc *race) by(c *connection) bool {
	if rc == nil {
		return false
	}
	_, runs := rc.runners[c]
	return runs
}

func (rc *race) on(c *connection, s *session) bool { return rc.by(c) && rc.runners[c].session == s }

// waits reports whether the connection waits for room in the sink.
func (rc *race) waits(c *connection) bool { return rc != nil && rc.full && rc.winner == c }

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
	d.balance.Grant(d.openBytes())
	now := d.now
	for _, c := range d.connections {
		d.abandon(c, slices.Clone(c.active), lost, now)
		c.link.refused = nil
	}
	if d.payload != nil && d.isProven() {
		d.race.keeps, d.race.have = true, d.payload.Have(d.part)
	}
	d.payload = nil
	if why == nil || errors.Is(why, transport.ErrNoRanges) && !d.ranged {
		d.note(slog.LevelWarn, "the server does not serve ranges, or gives no validator: only the fastest link is used")
	} else {
		d.note(slog.LevelWarn, "ranges cannot be used: only the fastest link is used from now on", "error", why)
	}
	if o := d.wholeOpening; o != nil {
		d.race.begin(o.link, o.on, o)
	}
	for _, c := range d.connections {
		if c.usable(now) {
			d.race.enter(c)
		}
	}
}

func (rc *race) enter(c *connection) {
	runs := slices.ContainsFunc(c.link.connections, rc.by)
	if !rc.d.isOver && c.isFirst() && rc.winner == nil && !runs && !c.session.draining && rc.canPayFor(len(rc.runners)+1) {
		rc.begin(c, c.session, nil)
	}
}

// begin requests the resource on a session, or takes the answer of an opening.
func (rc *race) begin(c *connection, s *session, opened *opening) {
	rc.d.requests++
	r := &request{Range: ranges.Range{Length: max(0, rc.d.resource.Size)}, id: rc.d.requests, session: s, race: rc, proof: new(transport.Proof)}
	if opened != nil {
		r.proof = opened.proof
	}
	rc.runners[c] = r
	c.link.Requests++
	s.requests++
	s.active++
	now := rc.d.now
	s.heardAt = now
	c.link.Meter.Start(now)
	c.pace.Begin(now, c.rtt.Min)
	rc.d.record(now, &rundir.Request{Link: c.link.Name, ID: r.id, Length: int64(r.Length)})
	rc.d.do(&receiving{caller: rc.d.caller(), c: c, r: r, opened: opened, target: rc.d.target(c), resource: rc.d.resource})
}

// canPayFor reports whether the balance allows so many links to receive the beginning. One always may.
func (rc *race) canPayFor(runners int) bool {
	lead := quantity.Bytes(raceLength)
	if size := rc.d.resource.Size; size >= 0 {
		lead = min(lead, size)
	}
	return runners == 1 || rc.d.balance.CanPay(quantity.Bytes(runners)*lead, rc.d.openBytes())
}

func (rc *race) ended(e received) {
	d, c, r := rc.d, e.c, e.r
	delete(rc.runners, c)
	c.pace.End(d.now)
	outcome, won := rundir.Failed, rc.winner == c
	if won {
		rc.winner = nil
	}
	switch {
	case e.err == nil && won:
		outcome = rundir.Complete
	case e.err == nil || e.isCanceled:
		outcome = rundir.Cancelled
	}
	size := r.received
	r.received, r.wasted = r.used, r.received-r.used
	c.link.raced += r.wasted
	d.recordEnd(&c.link.commonLink, r, outcome, e.err, d.now)
	switch outcome {
	case rundir.Complete:
		d.end = d.now
		if d.resource.Size < 0 {
			d.resource.Size = size
		}
		d.finish(transfer.ErrComplete)
	case rundir.Failed:
		d.trouble(c, r.session, e.err)
	}
}

// warn warns of a file that may be cut, unless a checksum will show it.
func (rc *race) warn(c *connection, bytes quantity.Bytes) {
	if rc.d.Verified || rc.d.resource.SHA256 != nil {
		return
	}
	rc.d.warning = unprovenEnd
	rc.d.note(slog.LevelWarn, unprovenEnd, "link", c.link.Name, "bytes", bytes)
}

// win reports whether the connection has won: no other one has, and it has enough bytes.
func (rc *race) win(c *connection, ended bool, bytes quantity.Bytes) bool {
	alone := len(rc.d.connections) == 1
	if rc.winner != nil || !ended && !alone && bytes < raceLength {
		return false
	}
	rc.winner, rc.dethroned = c, false
	for other, r := range rc.runners {
		if other != c {
			rc.d.do(cancelRequest{r})
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
			rc.d.recordFailover(&winner.link.commonLink, c.link.Name, rc.have.Bytes(), stalled, now)
			rc.dethroned = true
			rc.d.do(cancelRequest{rc.runners[winner]})
			return
		}
	}
}

// restart reports once whether the sink must begin again before it takes bytes.
func (rc *race) restart() bool {
	restarts := rc.restarts
	rc.restarts = false
	return restarts
}

// missing returns the wanted bytes from offset to end. If nothing proves that the sink's bytes are
// of the same file, these are all. It reports false if a program has read other bytes instead of these.
func (rc *race) missing(offset, end quantity.Bytes) (parts []ranges.Range, canGoOn bool) {
	offset = max(offset, rc.d.part.Offset)
	if rc.d.resource.Size >= 0 {
		end = min(end, rc.d.part.End())
	}
	wanted := ranges.NewSet(ranges.Range{Offset: offset, Length: end - offset})
	if rc.d.isProven() {
		for _, r := range rc.have.Ranges() {
			wanted.Remove(r)
		}
		return wanted.Ranges(), true
	}
	return wanted.Ranges(), rc.d.window == nil || rc.have.Below(end) == rc.have.Below(offset)
}

func (rc *race) written(r *request, part ranges.Range) {
	r.used += part.Length
	rc.have.Add(part)
}

// hasAll reports whether the sink has all bytes, though the answer goes on.
func (rc *race) hasAll() bool {
	return rc.keeps && rc.d.resource.Size >= 0 && rc.have.Below(rc.d.part.End())-rc.have.Below(rc.d.part.Offset) == rc.d.part.Length
}
