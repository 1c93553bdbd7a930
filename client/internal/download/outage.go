package download

import (
	"errors"
	"slices"
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
