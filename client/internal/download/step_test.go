package download

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// stepping is deciding with the links' first connections only, in its middle.
func stepping(t *testing.T) (*download, *connection) {
	d, _ := deciding(5e8)
	alone(d)
	d.now = 1050 * time.Millisecond
	d.URL = &url.URL{Scheme: "http", Host: "server", Path: "/file"}
	d.origin.url, d.ranged = d.URL, true
	for x, c := range d.connections {
		c.url = d.URL
		conn, err := transport.Open(t.Context(), newClosedSocket(), nil, nil, nil, d.URL)
		testkit.OK(t, err)
		c.session.Conn = conn
		c.session.requests, c.session.active = 1, 1
		c.active[0].Offset = quantity.Bytes(x) * 1e6
		c.active[0].limit = c.active[0].End()
		c.active[0].proof = new(transport.Proof)
	}
	return d, d.connections[0]
}

// wanted returns the actions of a step, one word each, without what only records, logs or tells a socket.
func wanted(d *download, e event) string {
	e.step(d)
	d.reconnect()
	var words []string
	for _, a := range d.actions {
		switch a := a.(type) {
		case recordEvent, writeLog, tellSocket:
		case *receiving:
			words = append(words, fmt.Sprintf("request %s %d", []string{"wifi", "lte"}[a.c.index], a.r.Length/1e5*1e5))
		case *attempt:
			words = append(words, "connect")
		case *paused:
			words = append(words, "pause "+a.pause.String())
		case endTransfer:
			words = append(words, "finish: "+a.err.Error())
		default:
			word := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", a), "*"), "download.")
			words = append(words, word)
		}
	}
	d.actions = nil
	return strings.Join(words, ", ")
}

// What happens to a connection makes the engine act. The actions follow from the state and the event alone.
func TestStepsAskForTheseActions(t *testing.T) {
	for what, test := range map[string]struct {
		change func(d *download, c *connection) event
		want   string
	}{
		"bytes arrive where few are on their way": {func(_ *download, c *connection) event {
			return progress{c, c.active[0], 1000}
		}, "request wifi 200000"},
		"bytes arrive where many are on their way": {func(d *download, c *connection) event {
			c.expected = 1e9
			return progress{c, c.active[0], 1000}
		}, ""},
		"the carrier goes": {func(_ *download, c *connection) event {
			return changed{c.link, link.Down}
		}, ""},
		"the carrier goes during an attempt": {func(_ *download, c *connection) event {
			c.session, c.active, c.newest, c.attempt = nil, nil, nil, new(attempt)
			return changed{c.link, link.Down}
		}, "cancelAttempt"},
		"the carrier comes back": {func(_ *download, c *connection) event {
			c.session, c.active, c.newest, c.link.down = nil, nil, nil, true
			return changed{c.link, link.Up}
		}, "connect"},
		"the carrier comes back during a pause": {func(_ *download, c *connection) event {
			c.session, c.active, c.newest, c.pausing, c.failures = nil, nil, nil, new(paused), 5
			return changed{c.link, link.Up}
		}, "endPause, connect"},
		"a pause has ended": {func(_ *download, c *connection) event {
			c.session, c.active, c.newest, c.pausing = nil, nil, nil, &paused{c: c}
			return c.pausing
		}, "connect"},
		"an earlier pause has ended": {func(_ *download, c *connection) event {
			c.session, c.active, c.newest, c.pausing = nil, nil, nil, &paused{c: c}
			return &paused{c: c}
		}, ""},
		"an attempt fails": {func(d *download, c *connection) event {
			c.session, c.active, c.newest = nil, nil, nil
			return &attempted{attempt: &attempt{d: d, c: c, url: c.url}, err: errors.New("refused")}
		}, "pause " + transfer.Backoff(1).String()},
		"bytes arrive after the end": {func(d *download, c *connection) event {
			d.isOver = true
			return progress{c, c.active[0], 1000}
		}, ""},
		"an attempt succeeds too late": {func(d *download, c *connection) event {
			return &attempted{attempt: &attempt{d: d, c: c, url: c.url}, conn: c.session.Conn}
		}, "closeConn"},
		"the sink fails": {func(_ *download, c *connection) event {
			return received{c: c, r: c.active[0], err: sinkError{errors.New("no space")}}
		}, "cancelRequest, finish: bytes 0-999999: no space"},
		"the server sends too much": {func(_ *download, c *connection) event {
			return received{c: c, r: c.active[0], err: transport.ErrTooLong}
		}, "cancelRequest, finish: link : bytes 0-999999: " + transport.ErrTooLong.Error()},
		"the last byte arrives": {func(d *download, c *connection) event {
			r := c.active[0]
			d.connections[1].active, d.connections[1].newest = nil, nil
			d.payload = ranges.NewPayload(d.part, ranges.Range{Offset: 1e6, Length: d.part.Length - 1e6})
			d.payload.TakeAll(ranges.Range{Length: 1e6})
			r.received = r.Length
			return progress{c, r, 1000}
		}, "finish: " + transfer.ErrComplete.Error()},
		"nothing was asked of a whole answer": {func(_ *download, c *connection) event {
			return does(func(d *download) { d.mayRead(c, &request{Range: ranges.Range{Length: 1000}, limit: 1000}) })
		}, ""},
	} {
		d, c := stepping(t)
		testkit.Same(t, wanted(d, test.change(d, c)), test.want, what)
	}
}

// What a step leaves behind decides later steps.
func TestWhatStepsLeaveBehind(t *testing.T) {
	const now = 1050 * time.Millisecond
	broken := errors.New("broken")
	// notAdded is how many connections less a link wants after an attempt.
	notAdded := func(d *download, c *connection, err error) int {
		c.link.Growth.Begin()
		before := c.link.Growth.Count(now, schedule.Flow{})
		d.notAdded(c.link.newConnection(), err)
		return before - c.link.Growth.Count(now, schedule.Flow{})
	}
	for what, test := range map[string]struct {
		do   func(d *download, c *connection) any
		want any
	}{
		"a socket is told what is still expected when bytes arrive": {func(d *download, c *connection) any {
			c.expected = 1e9
			progress{c, c.active[0], 1000}.step(d)
			return slices.Contains(d.actions, action(tellSocket{c.session}))
		}, true},
		"a link's rate begins anew with its only connection": {func(d *download, c *connection) any {
			c.link.Meter.Start(0)
			c.link.Meter.Add(time.Second, 1e6)
			c.link.Requests, c.active, c.newest = 1, nil, nil
			d.install(c, &session{Conn: c.session.Conn}, now)
			return c.link.Meter.Rate(now + 10*time.Millisecond)
		}, quantity.Rate(0)},
		"what came out of order before a connection was kept makes no hole": {func(d *download, c *connection) any {
			conn, err := transport.Open(t.Context(), &asked{closedSocket: newClosedSocket(), outOfOrder: 1000}, nil, nil, nil, d.URL)
			testkit.OK(t, err)
			d.install(c, &session{Conn: conn}, now)
			return c.session.hole.look(0, c.rtt.OutOfOrder, now, 0)
		}, quantity.Bytes(0)},
		"silence begins with a session's first request in flight": {func(d *download, c *connection) any {
			silent := map[bool]time.Duration{}
			for _, isFirst := range []bool{true, false} {
				r := &request{session: c.session}
				if isFirst {
					r.session = &session{Conn: c.session.Conn} // An older one.
				}
				c.active, c.session.heardAt = []*request{r}, time.Second
				d.issue(c, order{Range: ranges.Range{Length: 1000}}, nil, now)
				silent[isFirst] = c.session.heardAt
			}
			return fmt.Sprint(silent)
		}, fmt.Sprint(map[bool]time.Duration{true: now, false: time.Second})},
		"a link has one connection less whose attempt failed": {func(d *download, c *connection) any {
			return notAdded(d, c, broken)
		}, 1},
		"a link has as many connections after an attempt that is not needed": {func(d *download, c *connection) any {
			return notAdded(d, c, nil)
		}, 0},
		"answers without a range are few": {func(d *download, _ *connection) any {
			d.unranged = 2*mostWhole - 2
			d.countUnranged(broken, 0, now)
			return d.race != nil
		}, false},
		"answers without a range are many": {func(d *download, _ *connection) any {
			d.unranged = 2*mostWhole - 1
			d.countUnranged(broken, 0, now)
			return d.race != nil
		}, true},
		"an only answer that has not begun stays where it is": {func(d *download, c *connection) any {
			r := c.active[0]
			r.isWhole, r.received = true, 0
			works := []schedule.Work{{Usable: true, Rate: 1e6, Left: r.left()}, {Usable: true, Rate: 1e9}}
			d.victims.Reset(2)
			d.offer(0, victim{c, r}, r.left(), works[0], now)
			_, _, bytes := d.victims.Choose(1, works)
			return bytes
		}, quantity.Bytes(0)},
		"a duplicate that begins with its request is not late at once": {func(d *download, c *connection) any {
			r, by := c.active[0], d.connections[1].active[0]
			r.issued, by.issued, by.received, by.session.wait.there = now, now, 0, now
			return fmt.Sprint(d.isLate(by, r, now+time.Millisecond), d.isLate(by, r, now+time.Minute))
		}, "false true"},
		"a link's rate is averaged over its round trip": {func(d *download, c *connection) any {
			c.rtt.Last = 2 * time.Second
			rate := func() quantity.Rate {
				c.link.Together.Begin(0, 0)
				c.link.Together.Add(100*time.Millisecond, 1e6)
				c.link.Together.Add(time.Second, 1e3)
				return c.link.Together.Rate(now)
			}
			short := rate()
			c.link.Together = throughput.NewPace(schedule.PaceWindow)
			d.maintainLink(c.link, now)
			return rate() > short
		}, true},
	} {
		d, c := stepping(t)
		testkit.Same(t, test.do(d, c), test.want, what)
	}
}
