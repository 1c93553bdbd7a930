package download

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/throughput"
)

// watchdog ends a download in which no new bytes arrive, or too few, or too many unwanted ones.
type watchdog struct {
	d *download
	// floor is the least total rate of the links.
	floor throughput.Floor
}

// giveUp ends the download if no new bytes arrived for too long.
func (w *watchdog) giveUp(now time.Duration) {
	waiting := w.d.payload == nil || w.d.window == nil || w.d.payload.Free(w.d.limit()) > 0
	if w.d.race != nil {
		waiting = !w.d.race.full
	}
	for _, c := range w.d.connections {
		waiting = waiting || slices.ContainsFunc(c.active, (*request).isAwaited)
	}
	if !waiting {
		w.d.balance.Moved = now // The sink has no room.
		w.floor.Restart(now, w.received())
	}
	err := w.d.slowness(&w.floor, w.received(), w.kind(), now)
	if err != nil {
		if problems := w.problems(); problems != nil {
			err = fmt.Errorf("%w: %w", err, problems)
		}
		w.d.cancel(err)
	}
}

// kind says that old bytes arrive, and no new ones.
func (w *watchdog) kind() string {
	for _, l := range w.d.links {
		if l.Last > w.d.balance.Moved {
			return "new "
		}
	}
	return ""
}

// pay ends the download if the same bytes arrive again and again. The engine calls it when bytes
// repeat or a request fails, not when new bytes arrive.
func (w *watchdog) pay() {
	if !w.d.balance.MayEnd() {
		return
	}
	if received, fresh, isOver := w.d.balance.IsOver(w.open()); isOver && w.d.ctx.Err() == nil {
		err := fmt.Errorf("the server sends the same bytes again and again: %d bytes arrived, of which only %d were new", int64(received), int64(fresh))
		if problems := w.problems(); problems != nil {
			err = fmt.Errorf("%w: %w", err, problems)
		}
		w.d.cancel(err)
	}
}

// turn requests the whole file if ranges cost too much: an answer to a small range may bring many
// unwanted bytes, and the engine repeats requests that fail.
func (w *watchdog) turn(err error) {
	d := w.d
	canTurn := d.payload != nil && d.race == nil && d.ctx.Err() == nil && (d.window == nil || d.isProven())
	if canTurn && d.balance.MayEnd() && d.balance.IsDear(w.open()) {
		d.startRace(err)
	}
}

// open returns how many bytes of bodies the open sessions have brought.
func (w *watchdog) open() (sum quantity.Bytes) {
	for _, s := range w.d.sessions {
		sum += s.Bodies() - s.bodies
	}
	return sum
}

// close adds the bytes of a closed session to the balance.
func (w *watchdog) close(s *session) {
	if i := slices.Index(w.d.sessions, s); i >= 0 {
		w.d.sessions = slices.Delete(w.d.sessions, i, i+1)
		w.d.balance.Closed(s.Bodies() - s.bodies)
	}
}

// received is how many bytes have arrived on all links.
func (w *watchdog) received() (sum quantity.Bytes) {
	for _, c := range w.d.connections {
		if c.isFirst() {
			sum += c.link.Meter.Total()
		}
	}
	return sum
}

// problems says what is wrong with the links, once if it is the same for all. It is nil if no
// problem is known.
func (w *watchdog) problems() error {
	var errs []error
	texts := map[string]bool{}
	for _, c := range w.d.connections {
		err := cmp.Or(c.out, c.problem)
		if c.out == nil && c.session != nil && c.session.lives() {
			err = errUnanswered
		}
		if err != nil && c.isFirst() {
			texts[err.Error()] = true
			errs = append(errs, fmt.Errorf("link %s: %w", c.link.Name, err))
		}
	}
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return joined(errs)
}

// joined is several errors on one line.
type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joined) Unwrap() []error { return j }
