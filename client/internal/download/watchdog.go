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

// watchdog ends a download in which nothing arrives.
type watchdog struct {
	d *download
	// floor is the least rate of all links.
	floor throughput.Floor
}

// giveUp ends the download if nothing new has arrived for too long.
func (w *watchdog) giveUp(now time.Duration) {
	waiting := w.d.payload == nil || w.d.window == nil || w.d.payload.Free(w.d.limit()) > 0
	if w.d.race != nil {
		waiting = !w.d.race.full
	}
	for _, c := range w.d.connections {
		waiting = waiting || slices.ContainsFunc(c.active, (*request).isAwaited)
	}
	if !waiting {
		w.d.balance.Moved = now // the sink takes no more
		w.floor.Restart(now, w.received())
	}
	var err error
	switch {
	case w.d.GiveUp > 0 && now-w.d.balance.Moved >= w.d.GiveUp:
		err = fmt.Errorf("nothing %sarrived for %v", w.kind(), w.d.GiveUp)
	case w.floor.IsUnder(now, w.received()):
		err = fmt.Errorf("less than %v bit/s arrived for %v: --lowest-rate says how little is allowed, 0 for anything", float64(w.d.LowestRate), w.d.GiveUp)
	}
	if err != nil {
		if problems := w.problems(); problems != nil {
			err = fmt.Errorf("%w: %w", err, problems)
		}
		w.d.cancel(err)
	}
}

// kind says which bytes are missed where others arrive.
func (w *watchdog) kind() string {
	for _, l := range w.d.links {
		if l.Last > w.d.balance.Moved {
			return "new "
		}
	}
	return ""
}

// pay ends the download if its bytes arrive again and again. It is called where bytes are repeated
// or a request fails: what is new may always come.
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

// turn asks for the whole file if ranges have become too dear: an answer to a small range may bring much
// more, and what fails is asked for again.
func (w *watchdog) turn(err error) {
	d := w.d
	canTurn := d.payload != nil && d.race == nil && d.ctx.Err() == nil && (d.window == nil || d.isProven())
	if canTurn && d.balance.MayEnd() && d.balance.IsDear(w.open()) {
		d.startRace(err)
	}
}

// open returns what open sessions have brought.
func (w *watchdog) open() (sum quantity.Bytes) {
	for _, s := range w.d.sessions {
		sum += s.Bodies() - s.bodies
	}
	return sum
}

// close adds a session that has ended to the account.
func (w *watchdog) close(s *session) {
	if i := slices.Index(w.d.sessions, s); i >= 0 {
		w.d.sessions = slices.Delete(w.d.sessions, i, i+1)
		w.d.balance.Closed(s.Bodies() - s.bodies)
	}
}

// received is what has arrived on all links.
func (w *watchdog) received() (sum quantity.Bytes) {
	for _, c := range w.d.connections {
		if c.isFirst() {
			sum += c.link.Meter.Total()
		}
	}
	return sum
}

// problems says what is wrong with the links; once, if it is the same. It is nil
// if nothing is known of.
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
