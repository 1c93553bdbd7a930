package download

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// giveUp ends the download if no new bytes arrived for too long.
func (d *download) giveUp(now time.Duration) {
	var received quantity.Bytes
	for _, l := range d.links {
		received += l.Meter.Total()
	}
	waiting := d.payload == nil || d.window == nil || d.payload.Free(d.limit()) > 0
	if d.race != nil {
		waiting = !d.race.full
	}
	for _, c := range d.connections {
		waiting = waiting || slices.ContainsFunc(c.active, (*request).isAwaited)
	}
	if err := d.slowness(waiting, received, now); err != nil {
		d.finishBy(err)
	}
}

// pay ends the download if the same bytes arrive again and again. The engine calls it when bytes
// repeat or a request fails, not when new bytes arrive.
func (d *download) pay() {
	if !d.balance.MayEnd() {
		return
	}
	if received, fresh, isOver := d.balance.IsOver(d.openBytes()); isOver && !d.isOver {
		d.finishBy(fmt.Errorf("the server sends the same bytes again and again: %d bytes arrived, of which only %d were new", int64(received), int64(fresh)))
	}
}

// finishBy ends the download with an error, and what is wrong with the links.
func (d *download) finishBy(err error) {
	if problems := d.problems(); problems != nil {
		err = fmt.Errorf("%w: %w", err, problems)
	}
	d.finish(err)
}

// turn requests the whole file if ranges cost too much: an answer to a small range may bring many
// unwanted bytes, and the engine repeats requests that fail.
func (d *download) turn(err error) {
	canTurn := d.payload != nil && d.race == nil && !d.isOver && (d.window == nil || d.isProven())
	if canTurn && d.balance.MayEnd() && d.balance.IsDear(d.openBytes()) {
		d.startRace(err)
	}
}

// openBytes returns how many bytes of bodies the open sessions have brought.
func (d *download) openBytes() (sum quantity.Bytes) {
	for _, s := range d.sessions {
		sum += s.Bodies() - s.bodies
	}
	return sum
}

// countClosed adds the bytes of a closed session to the balance.
func (d *download) countClosed(s *session) {
	if i := slices.Index(d.sessions, s); i >= 0 {
		d.sessions = slices.Delete(d.sessions, i, i+1)
		d.balance.Closed(s.Bodies() - s.bodies)
	}
}

// problems says what is wrong with the links, each problem once. It is nil if no problem is known.
func (d *download) problems() (all error) {
	known := map[string]bool{}
	for _, l := range d.links {
		c := l.first()
		err := cmp.Or(c.out, c.problem)
		if c.out == nil && c.session != nil && c.session.lives() {
			err = errUnanswered
		}
		if err == nil || known[err.Error()] {
			continue
		}
		known[err.Error()] = true
		err = fmt.Errorf("link %s: %w", l.Name, err)
		if all != nil {
			err = fmt.Errorf("%w; %w", all, err)
		}
		all = err
	}
	return all
}
