package download

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transport"
)

// wire counts what the network brought for a link, TLS included. The kernel knows it: bodies arrive
// a record of TLS at a time, which is seldom on a slow link, and not at all behind a lost packet.
type wire struct {
	of       *transport.Conn
	seen     quantity.Bytes // of that connection
	received quantity.Bytes
	heard    time.Duration
}

// look updates the count by the link's connection.
func (w *wire) look(conn *transport.Conn, now time.Duration) {
	if w.of != conn {
		w.of, w.seen = conn, 0
	}
	got := conn.Received()
	if known, err := conn.Socket.RoundTrip(); err == nil {
		got = max(got, quantity.Bytes(known.Segments)*schedule.SegmentSize)
	}
	if got > w.seen {
		w.received += got - w.seen
		w.seen, w.heard = got, now
	}
}

// planView is what a plan sees of the links, and which of them it uses.
type planView struct {
	plan schedule.Plan
	// opens says that the first request is for bytes.
	opens bool
	scene schedule.Scene
	// use says which links the plan uses, and seen is what it sees of each.
	use  []bool
	seen []seenLink
}

// seenLink is a link with its connection.
type seenLink struct {
	*commonLink
	*commonConnection
	wire
	kind energy.Kind
	// first is when the first request of the link was sent.
	first time.Duration
}

func newPlanView(plan schedule.Plan) planView {
	_, opens := plan.(schedule.Opener)
	return planView{plan: plan, opens: opens}
}

// add adds a link.
func (v *planView) add(l *commonLink, c *commonConnection) {
	v.use = append(v.use, false)
	v.seen = append(v.seen, seenLink{commonLink: l, commonConnection: c, kind: energy.KindOf(l.Name, l.Device)})
	v.scene.Links, v.scene.Progress = append(v.scene.Links, schedule.Link{}), append(v.scene.Progress, schedule.Progress{})
}

// observe updates what the plan sees. more adds what only the engine knows of the progress of link x.
func (v *planView) observe(t *task, now time.Duration, more func(x int, progress *schedule.Progress)) {
	v.scene.Now = now
	var assigned quantity.Bytes
	for x := range v.seen {
		l := &v.seen[x]
		if l.first == 0 && len(l.active) > 0 {
			l.first = l.active[0].issued // An opening, which is not the plan's.
		}
		if l.session != nil {
			l.look(l.session.Conn, now)
		}
		progress := &v.scene.Progress[x]
		*progress = schedule.Progress{Kind: l.kind, Received: l.wire.received, Silence: math.MaxInt64, Unfinished: l.expected}
		if l.Requests > 0 {
			progress.Age, progress.Silence = now-l.first, now-max(l.first, l.wire.heard)
		}
		v.scene.Links[x] = l.known(l.commonLink, now)
		more(x, progress)
		assigned += progress.Unfinished
	}
	if t.payload == nil {
		return
	}
	t.show(&v.scene, assigned)
	for _, l := range v.seen {
		for _, r := range l.active {
			v.scene.Reach(r.Offset, r.next())
		}
	}
}

// begins notes the first request of a link.
func (v *planView) begins(x int, next order, now time.Duration) {
	if next.Length > 0 && v.seen[x].first == 0 {
		v.seen[x].first = now
	}
}
