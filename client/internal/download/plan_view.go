package download

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
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

type seenLink struct {
	wire
	kind energy.Kind
	// first is when the first request of the link was sent.
	first time.Duration
}

func newPlanView(plan schedule.Plan, links []transfer.Link) planView {
	n := len(links)
	v := planView{plan: plan, use: make([]bool, n), seen: make([]seenLink, n)}
	_, v.opens = plan.(schedule.Opener)
	v.scene.Links, v.scene.Progress = make([]schedule.Link, n), make([]schedule.Progress, n)
	for x, l := range links {
		v.seen[x].kind = energy.KindOf(l.Name, l.Device)
	}
	return v
}

// see updates what the plan sees of link x, which has its present session and has sent so many requests. The caller adds
// the rest of its progress.
func (v *planView) see(x int, known schedule.Link, s *session, requests int, now time.Duration) *schedule.Progress {
	l := &v.seen[x]
	if s != nil {
		l.look(s.Conn, now)
	}
	progress := &v.scene.Progress[x]
	*progress = schedule.Progress{Kind: l.kind, Received: l.received, Silence: math.MaxInt64}
	if requests > 0 {
		progress.Age, progress.Silence = now-l.first, now-max(l.first, l.heard)
	}
	v.scene.Now, v.scene.Links[x] = now, known
	return progress
}

// reach shows the plan how far requests have come.
func (v *planView) reach(active []*request) {
	for _, r := range active {
		v.scene.Reach(r.Offset, r.next())
	}
}
