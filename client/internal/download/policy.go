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

// A policy decides what the engine leaves open: as published (asPublished), or
// with rescue (withRescue). All but offer are called with the download locked,
// supervise before there is anybody to share it with.
type policy interface {
	// offer is what connections offer to servers.
	offer(*tls.Config) *tls.Config
	// isMinimal says that requests leave out what no server needs (transport.Target.Bare).
	isMinimal() bool
	// accept says whether the resource is to come as a whole, by one link,
	// or why it is not taken.
	accept(transport.Resource) (whole bool, err error)
	// watch begins to follow what happens to the link's device, until ctx ends.
	watch(ctx context.Context, l *linkState)
	// supervise begins to look after the links, until ctx ends.
	supervise(ctx context.Context)

	// timed says that an attempt to connect is given up in time.
	timed() bool
	// unreachable takes note of an attempt to connect that failed, and
	// returns after which time there is to be another one, if any.
	unreachable(c *connection, err error) (pause time.Duration, again bool)

	// opensWithRange says that the first question is for the first bytes already.
	opensWithRange() bool
	// start is called when the links begin to connect.
	start()
	// maintain is called at regular times, to keep the number of connections right.
	maintain(now time.Duration)

	// next is what the connection should request next.
	next(c *connection, now time.Duration) order
	// due reports whether the link's next request is, when bytes of r have
	// arrived.
	due(c *connection, r *request, now time.Duration) bool
	// ahead is how many bytes the link should always have to wait for.
	ahead(c *connection) quantity.Bytes

	// lost takes note of bytes that a failed request of the link did not
	// deliver.
	lost(c *connection, bytes quantity.Bytes, now time.Duration)
	// freed is called when a request ended early, and its bytes are free.
	freed()
	// failed decides what follows from the failure of a request on a session
	// of the link.
	failed(c *connection, s *session, err error)
	// exclude uses the link no more.
	exclude(c *connection, err error)
}

func newPolicy(d *download) policy {
	v := fullView{d}
	var p policy = asPublished{v}
	if d.Rescue {
		rescue := withRescue{v, &d.stealer, &d.estimates, &d.monitor, &d.refusals}
		if d.Connections != nil {
			return withConnections{rescue, &grower{d, d.Connections.Most}, &d.hedger}
		}
		p = rescue
	}
	if planner, ok := d.Scheduler.(schedule.Planner); ok {
		return newPlanned(v, p, planner.Plan(), d.Rescue, d.Log)
	}
	return p
}

// asPublished is the engine of the thesis: HTTP/2 alone, nobody but the
// scheduler decides who delivers what, and the first failure of a link that
// is still needed ends the download, as does silence (Options.GiveUp).
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
