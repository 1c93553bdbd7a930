package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
)

// repeatTime is how much of its time a connection spends on bytes that another
// one may deliver first.
const repeatTime = 250 * time.Millisecond

// repeat lets a link that nothing is left for request again what another one
// still owes, if that may well come later: the last bytes of a link that has
// just gone silent would cost more than any that come twice. Whichever request
// is complete first ends the other.
func (d *download) repeat(c *connection, works []schedule.Work, now time.Duration) {
	thief := works[c.link.index]
	if thief.Rate == 0 || len(c.active) > 0 {
		return
	}
	var late *request
	var of *connection
	latest := 0.0
	most := max(schedule.FirstOrder, quantity.Bytes(thief.Rate.Over(repeatTime)))
	for _, other := range d.connections {
		if other == c || other.link == c.link && !other.isSilent(now) {
			continue
		}
		for _, r := range other.active {
			// What is complete is only being written.
			if r.left() == 0 || r.left() > most || !d.repeatable(r, other, c) {
				continue
			}
			due := r.received > 0 || now-r.issued < 2*max(other.delay(), other.rtt.Last)
			owing := works[other.link.index]
			end := owing.Late(due && !other.isSilent(now))
			if r.received == 0 && owing.Arrived == 0 {
				end = max(end, owing.First(r.left())-(now-r.issued).Seconds())
			}
			end = max(end, r.session.hole.filled(now, other.rtt.Last).Seconds())
			if end > latest {
				late, of, latest = r, other, end
			}
		}
	}
	if late == nil || !thief.Sooner(late.left(), latest) {
		return
	}
	if late.twin != nil {
		d.endRepeat(late.twin, now)
	}
	d.duplicate(c, of, late, now)
}

// duplicate has a link request what another one's request still owes.
func (d *download) duplicate(c, of *connection, r *request, now time.Duration) {
	d.issue(c, ranges.Range{Offset: r.next(), Length: r.left()}, of.link.Name, nil, now)
	r.twin, c.newest.twin, c.newest.repeats = c.newest, r, true
}

// endRepeat gives up a request that repeats another one in vain.
func (d *download) endRepeat(r *request, now time.Duration) {
	r.part()
	d.drop(d.of(r), r, now)
}

// repeatable reports whether c may repeat a request of another connection: if
// none does, or, in vain so far, only one of the same link.
func (d *download) repeatable(r *request, of, c *connection) bool {
	if r.twin == nil {
		return true
	}
	by := d.of(r.twin)
	return !r.repeats && r.twin.received == 0 && by != nil && by.link == of.link && c.link != of.link
}

// part ends that the request has a twin. Where both have the same bytes, those
// of the request count if it is complete, else those of the twin.
func (r *request) part() (twin *request) {
	twin = r.twin
	if twin == nil {
		return nil
	}
	loser, repeat := r, twin
	if r.complete() {
		loser = twin
	}
	if r.repeats {
		repeat = r
	}
	loser.surplus, loser.needed = true, repeat.Offset-loser.Offset
	r.twin, twin.twin, r.repeats, twin.repeats = nil, nil, false, false
	return twin
}

// ousted ends the twin of a request that is complete.
func (d *download) ousted(r *request, now time.Duration) {
	twin := r.part()
	if twin == nil {
		return
	}
	if c := d.of(twin); c != nil {
		d.drop(c, twin, now)
		if c.newest == nil {
			d.request(c)
		}
	}
}

// of is whose request it is; nil if that is not in flight any more.
func (d *download) of(r *request) *connection {
	for _, c := range d.connections {
		if slices.Contains(c.active, r) {
			return c
		}
	}
	return nil
}

// counted is what counts of what a request received, and the rest is wasted.
func (c *connection) counted(r *request) {
	if !r.surplus || r.received <= r.needed {
		return
	}
	c.link.raced += r.received - r.needed
	r.wasted += r.received - r.needed
	r.received = r.needed
}
