package download

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/transport"
)

// Outage is the error of a download for which no link reached the server, or
// brought anything for too long. The same download may succeed later.
type Outage struct {
	Err error
	// RetryAfter is how long the server asks to wait; 0 if it does not.
	RetryAfter time.Duration
}

func (o *Outage) Error() string { return o.Err.Error() }

func (o *Outage) Unwrap() error { return o.Err }

// outage makes err an Outage if a link may do better later, unless the server
// has answered another one for good before anything arrived.
func (d *download) outage(err error) error {
	var waits []time.Duration
	for _, l := range d.links {
		status := new(transport.StatusError)
		switch {
		case l.out == nil:
			waits = append(waits, 0)
		case errors.As(l.out, &status) && status.Temporary():
			waits = append(waits, status.RetryAfter)
		case isPermanent(l.out):
		case d.payload == nil && d.race == nil:
			return err
		}
	}
	if len(waits) == 0 {
		return err
	}
	return &Outage{err, slices.Min(waits)}
}

// giveUp ends the download if nothing has arrived for too long.
func (d *download) giveUp(now time.Duration) {
	waiting := d.payload == nil || d.window == nil || d.payload.Free(d.limit()) > 0
	if d.race != nil {
		waiting = !d.race.full
	}
	for _, l := range d.links {
		waiting = waiting || len(l.active) > 0
	}
	if !waiting {
		d.last = now // the sink takes no more
	}
	if d.GiveUp > 0 && now-d.last >= d.GiveUp {
		err := fmt.Errorf("nothing arrived for %v", d.GiveUp)
		if problems := d.problems(); problems != nil {
			err = fmt.Errorf("%w: %w", err, problems)
		}
		d.cancel(d.outage(err))
	}
}

// problems says what is wrong with the links; once, if it is the same. It is nil
// if nothing is known of.
func (d *download) problems() error {
	var errs []error
	texts := map[string]bool{}
	for _, l := range d.links {
		err := cmp.Or(l.out, l.problem)
		if err != nil && l.first == nil {
			texts[err.Error()] = true
			errs = append(errs, fmt.Errorf("link %s: %w", l.Name, err))
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
