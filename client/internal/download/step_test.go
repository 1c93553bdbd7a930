package download

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
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
