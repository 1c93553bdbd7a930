package download

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transport"
)

// A policy makes the engine's decisions: as published (asPublished), or with rescue (withRescue).
// The engine calls its methods with the download locked, except offer and supervise, which it
// calls before other goroutines run.
type policy interface {
	// offer is what connections offer to servers.
	offer(*tls.Config) *tls.Config
	// isMinimal says that requests have only the header fields that a server needs
	// (transport.Target.Bare).
	isMinimal() bool
	// accept says whether one link downloads the whole resource, or why the download fails.
	accept(transport.Resource) (whole bool, err error)
	// watch begins to follow the changes of the link's device, until ctx ends.
	watch(ctx context.Context, l *linkState)
	// supervise begins to look at the links at regular times, until ctx ends.
	supervise(ctx context.Context)

	// timed says that attempts to connect have a time limit.
	timed() bool
	// unreachable notes an attempt to connect that failed. It returns the pause until the next
	// attempt, and whether there is one.
	unreachable(c *connection, err error) (pause time.Duration, again bool)

	// opensWithRange says that the first request is a GET for bytes, not a HEAD.
	opensWithRange() bool
	// start is called when the links begin to connect.
	start()
	// maintain is called at regular times. It adds and removes connections.
	maintain(now time.Duration)

	// next is the connection's next request.
	next(c *connection, now time.Duration) order
	// due reports whether the connection should send its next request, after bytes of r arrived.
	due(c *connection, r *request, now time.Duration) bool
	// ahead is how many bytes the connection should always have in flight.
	ahead(c *connection) quantity.Bytes

	// lost notes the bytes that a failed request did not bring.
	lost(c *connection, bytes quantity.Bytes, now time.Duration)
	// freed is called when the bytes of a failed request are free.
	freed()
	// failed decides what follows from the failure of a request on a session
	// of the link.
	failed(c *connection, s *session, err error)
	// exclude stops using the connection's link.
	exclude(c *connection, err error)
}

func newPolicy(d *download) policy {
	v := fullView{d}
	var p policy = asPublished{v}
	if d.Rescue {
		rescue := withRescue{v, &d.stealer, &d.hedger, &d.estimates, &d.monitor, &d.refusals}
		if d.Connections != nil {
			return withConnections{rescue, &grower{d, d.Connections.Most}}
		}
		p = rescue
	}
	if planner, ok := d.Scheduler.(schedule.Planner); ok {
		return newPlanned(v, p, planner.Plan(), d.Rescue, d.Log)
	}
	return p
}

// asPublished is the policy of the thesis. It uses HTTP/2 alone, and only the scheduler decides
// which link brings which bytes. The first failure of a link that is still needed ends the
// download, as does silence (Options.GiveUp).
type asPublished struct{ view view }

func (asPublished) offer(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"h2"}
	return c
}

func (asPublished) isMinimal() bool { return true }

func (asPublished) accept(r transport.Resource) (whole bool, err error) {
	switch {
	case r.Size < 0:
		return false, errors.New("the server does not tell the size of the file (no Content-Length)")
	case r.NoRanges:
		return false, errors.New("the server does not serve ranges (Accept-Ranges: none)")
	}
	return false, nil
}

func (asPublished) watch(context.Context, *linkState) {}

func (p asPublished) supervise(ctx context.Context) {
	p.view.every(ctx, time.Second, p.view.giveUp)
}

func (asPublished) opensWithRange() bool { return false }

func (asPublished) start() {}

func (asPublished) maintain(time.Duration) {}

func (asPublished) timed() bool { return false }

func (p asPublished) unreachable(c *connection, err error) (time.Duration, bool) {
	if p.view.isAllAssigned() {
		return 0, false
	}
	p.view.fail(c, err)
	return 0, true
}

func (p asPublished) next(c *connection, now time.Duration) order {
	return p.view.take(p.view.nextSize(c, now))
}

func (p asPublished) due(c *connection, r *request, _ time.Duration) bool {
	return p.view.overlapped(c, r)
}

func (asPublished) ahead(*connection) quantity.Bytes { return 0 }

func (asPublished) lost(*connection, quantity.Bytes, time.Duration) {}

func (asPublished) freed() {}

func (p asPublished) failed(c *connection, _ *session, err error) { p.view.fail(c, err) }

func (p asPublished) exclude(c *connection, err error) { p.view.fail(c, err) }
