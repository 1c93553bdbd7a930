package download

import (
	"context"
	"log/slog"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/regularly"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// This file is the run loop of the engine with rescue. One goroutine owns the whole state. What happens comes to it as
// an event. The event's step changes the state and decides. A step reads counters of sockets. It waits for nothing and
// reads no clock. What it wants done is a list of actions, which the loop performs in order when the step has ended.
// Other goroutines wait, read sockets and write the sink: attempt.go and receive.go.

// An event is something that happened.
type event interface{ step(d *download) }

// does is an event whose step is the function.
type does func(d *download)

func (f does) step(d *download) { f(d) }

// An action is something that a step wants done. It waits for nothing.
type action interface{ perform() }

// act is an action that the function performs.
type act func()

func (a act) perform() { a() }

// message brings an event to the loop. The loop sends to handled, which has room, after it has performed the event's
// actions.
type message struct {
	event
	handled chan struct{}
}

// post brings an event to the loop. It does not wait for the event's step.
func (d *download) post(e event) { d.events <- message{event: e} }

// caller brings the events of one goroutine to the loop, one at a time.
type caller struct {
	d       *download
	handled chan struct{}
}

func (d *download) caller() caller { return caller{d, make(chan struct{}, 1)} }

// call brings an event to the loop, and waits until its actions have been performed.
func (c caller) call(e event) {
	c.d.events <- message{e, c.handled}
	<-c.handled
}

// transfer handles events until the transfer has ended and no other goroutine of it is left.
func (d *download) transfer(ctx context.Context) error {
	d.wg.Add(1) // The loop may start goroutines until it closes.
	go func() {
		<-ctx.Done()
		d.post(does(func(d *download) {
			d.isClosing = true
			d.wg.Done()
		}))
		d.wg.Wait()
		close(d.events)
	}()
	d.handle(does((*download).startAll))
	for m := range d.events {
		d.handle(m.event)
		if m.handled != nil {
			m.handled <- struct{}{}
		}
	}
	err := d.ended()
	d.now = time.Since(d.start)
	for _, c := range d.connections {
		if c.session != nil {
			c.measure()
			d.leave(c, c.session, err == nil)
		}
	}
	for len(d.sessions) > 0 {
		d.countClosed(d.sessions[0])
	}
	d.perform()
	return err
}

// handle does the step of an event, then the steps of the events that its actions brought at once.
func (d *download) handle(e event) {
	d.pending = append(d.pending, e)
	for len(d.pending) > 0 {
		e, d.pending = d.pending[0], d.pending[1:]
		d.now, d.isOver = time.Since(d.start), d.isOver || d.ctx.Err() != nil
		e.step(d)
		d.reconnect()
		d.perform()
	}
}

func (d *download) perform() {
	for _, a := range d.actions {
		a.perform()
	}
	clear(d.actions)
	d.actions = d.actions[:0]
}

// launch starts a goroutine that may bring events.
func (d *download) launch(f func()) {
	if !d.isClosing {
		d.wg.Go(f)
	}
}

func (d *download) every(period time.Duration, e event) {
	d.launch(func() { regularly.Do(d.ctx, period, func() { d.post(e) }) })
}

func (d *download) startAll() {
	for _, l := range d.links {
		d.connect(l.first())
		if l.Watch != nil {
			d.do(act(func() { d.launch(func() { l.Watch(d.ctx, func(change link.Change) { d.post(changed{l, change}) }) }) }))
		}
	}
	if d.Connections != nil {
		d.startGrowth()
	}
	d.do(act(func() {
		if d.window != nil {
			d.launch(func() { d.follow(func() { d.post(does((*download).grown)) }) })
		}
		d.every(transfer.CheckInterval, does((*download).tick))
		if d.plan != nil {
			d.every(d.plan.plan.Every(), does(func(d *download) { d.plan.look(d.now) }))
		}
	}))
}

// tick is the step in which the engine looks at all connections, and every second time samples the links. The samples
// come last: they do not decide.
func (d *download) tick() {
	d.look(d.now)
	if at := d.now.Truncate(rundir.SampleInterval); len(d.Recorders) > 0 && at > d.sampledAt {
		d.sampledAt = at
		d.sample(d.now)
	}
}

// grown is the step when the sink has more room.
func (d *download) grown() {
	d.assign()
	d.goOn()
	if d.race != nil {
		d.do(notifyWorker{d.race.grown})
	}
}

type recordEvent struct {
	t     *task
	at    time.Duration
	event rundir.Event
}

func (r recordEvent) perform() {
	for _, to := range r.t.Recorders {
		to.Record(r.at, r.event)
	}
}

type writeLog struct {
	t     *task
	level slog.Level
	text  string
	args  []any
}

func (n writeLog) perform() { n.t.Log.Log(context.Background(), n.level, n.text, n.args...) }

type endTransfer struct {
	t   *task
	err error
}

func (f endTransfer) perform() { f.t.cancel(f.err) }

type cancelRequest struct{ r *request }

func (c cancelRequest) perform() { c.r.cancel() }

type closeConn struct{ conn *transport.Conn }

func (h closeConn) perform() { h.conn.Close() }

// tellSocket tells a session's socket how many bytes are expected of it.
type tellSocket struct{ s *session }

func (t tellSocket) perform() {
	t.s.Socket.Await(t.s.decision, t.s.end)
	t.s.Socket.Owes(t.s.owes)
}

// notifyWorker tells a goroutine that may wait for it.
type notifyWorker struct{ to chan struct{} }

func (n notifyWorker) perform() {
	select {
	case n.to <- struct{}{}:
	default:
	}
}

func (d *download) keepInPool(c *connection, s *session) {
	d.do(act(func() { d.Pool.put(c.link.Name, c.url, s.Conn) }))
}

// askPeer asks the other end of a session for a sign of life. A failure means a closed connection.
func (d *download) askPeer(s *session) { d.do(act(func() { _ = s.Ask() })) }
