package upload

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

const (
	// unsent is how many bytes the kernel takes beyond those that it can send. With more, the
	// bytes that a connection took would not show how many the link has sent.
	unsent = 64 << 10
	// connectPatience is how long a link may take to connect. Each failure doubles it, up to
	// four times.
	connectPatience = 5 * time.Second
	// TLS may take securePatience once TCP is connected, or secureTrips round trips if that is
	// longer. Each attempt doubles it, since TCP repeats its segments later and later.
	securePatience = time.Second
	secureTrips    = 8
)

var (
	errSilent = errors.New("the link gets nothing to the server")
	// errInsecure ends an attempt whose TLS takes too long.
	errInsecure = errors.New("nothing came for TLS")
)

// httpConn is a transport.Conn.
type httpConn interface {
	Put(ctx context.Context, t transport.Target, body io.Reader, part ranges.Range, size quantity.Bytes, asks bool) (code int, status string, err error)
	Usable() bool
	Received() quantity.Bytes
	Close() error
}

// connection is one of a link's connections to the server. When it breaks, it is made again.
type connection struct {
	link *linkState
	// conn is nil while there is none.
	conn httpConn
	// sockets are its TCP connections: one, or over HTTP/1.1 a few.
	sockets *sockets
	// connecting says that a new connection is being made, perhaps beside a silent one. abandon
	// ends the attempt.
	connecting bool
	abandon    context.CancelFunc
	// tries counts the attempts in which TLS took too long.
	tries int
	// leaving says that the connection takes no more requests, and gone that it was removed.
	leaving, gone bool

	// active are its requests, the oldest first. answered is the newest that the server has
	// confirmed.
	active   []*request
	answered int
	// pace is the rate at which bytes get to the server's kernel. pending is how many were sent
	// and are not there yet.
	pace    *throughput.Pace
	pending quantity.Bytes
	// fresh is how many of these bytes no request had sent before.
	fresh quantity.Bytes
	// got is when bytes got there last. heard is got, or when no bytes were pending. silent says
	// that heard is too long ago.
	got, heard time.Duration
	silent     bool
	// stuck is how often the connection was stuck since the server confirmed a range.
	stuck         int
	rtt, leastRTT time.Duration
}

// connect begins to make a connection.
func (c *connection) connect() {
	l, u := c.link, c.link.upload
	c.connecting = true
	between := time.Duration(0)
	switch {
	case u.Rescue && c.rtt > 0:
		between = max(transfer.CheckInterval, c.rtt/2)
	case u.Rescue:
		between = transfer.LeastBackoff
	}
	ctx, cancel := u.attempt(l.failures)
	c.abandon = cancel
	tries := c.tries
	u.running.Go(func() {
		defer cancel()
		conn, opened, err := l.open(ctx, between, tries)
		u.mu.Lock()
		defer u.mu.Unlock()
		c.connecting = false
		switch needed := u.ctx.Err() == nil && !c.gone && c.isMissing(); {
		case err == nil && needed:
			c.install(conn, opened)
		case err == nil:
			conn.Close()
		case !needed || errors.Is(context.Cause(ctx), context.Canceled):
			// The connection is not needed any more, or another attempt comes first.
		case errors.Is(err, errInsecure):
			c.tries++
		case c.conn != nil && u.Rescue:
			l.pause(cmp.Or(context.Cause(ctx), err)) // The silent connection may go on.
		default:
			u.broken(c, cmp.Or(context.Cause(ctx), err))
		}
		u.fill()
	})
}

// attempt is the time limit of an attempt to connect after so many failures. As published there is
// none: TCP gives up.
func (u *upload) attempt(failures int) (context.Context, context.CancelFunc) {
	if !u.Rescue {
		return context.WithCancel(u.ctx)
	}
	return context.WithTimeoutCause(u.ctx, connectPatience<<min(failures, 2), errSilent)
}

// open makes a connection. It sends another SYN each time that the time between has passed. In so
// many earlier tries TLS got no answer.
func (l *linkState) open(ctx context.Context, between time.Duration, tries int) (httpConn, *sockets, error) {
	opened := &sockets{}
	dial := func(ctx context.Context) (link.Socket, error) {
		opened.dialing.Add(1)
		defer opened.dialing.Add(-1)
		below, err := l.Dial(ctx, transport.Address(l.upload.URL))
		if err != nil {
			return nil, err
		}
		if bulk, ok := below.(link.Sender); ok {
			if err := errors.Join(bulk.LimitUnsent(unsent), bulk.FillSegments(true)); err != nil {
				below.Close()
				return nil, err
			}
		}
		return newSocket(below, opened), nil
	}
	kept := func(below link.Socket, err error) (link.Socket, error) {
		if err == nil {
			opened.mu.Lock()
			defer opened.mu.Unlock()
			opened.all = append(opened.all, below.(*socket))
		}
		return below, err
	}
	first, err := kept(transfer.Dial(ctx, dial, between))
	if err != nil {
		return nil, nil, err
	}
	again := func(ctx context.Context) (link.Socket, error) { return kept(dial(ctx)) }
	secure, cancel := ctx, context.CancelFunc(func() {})
	if rtt, err := first.RoundTrip(); err == nil && l.upload.Rescue {
		least := max(securePatience, secureTrips*rtt.Sending)
		secure, cancel = context.WithTimeoutCause(ctx, least<<min(tries, 10), errInsecure)
	}
	defer cancel()
	conn, err := transport.Open(secure, first, again, l.upload.TLS, l.upload.Hellos, l.upload.URL)
	if err != nil && ctx.Err() == nil && secure.Err() != nil {
		err = errInsecure
	}
	if err == nil {
		opened.waits.Store(!strings.HasSuffix(conn.Protocol, "h2"))
	}
	return conn, opened, err
}

// install makes the connection use conn. Other connections may send the unfinished ranges of an
// older, silent one.
func (c *connection) install(conn httpConn, opened *sockets) {
	c.close(errSilent)
	now := c.link.upload.now()
	c.conn, c.sockets, c.tries = conn, opened, 0
	c.pace = throughput.NewPace(schedule.PaceWindow)
	opened.look() // The bytes of the TLS handshake do not count.
	c.heard = now
	c.measure(now)
	if c.link.upload.free.Bytes() == 0 {
		opened.hurry()
	}
	c.link.Shown.Add(now, conn.Received())
}

// close closes the connection, if there is one, and ends its requests.
func (c *connection) close(err error) {
	owes := c.left() > 0
	c.silent, c.pending, c.fresh = false, 0, 0
	for _, one := range slices.Clone(c.active) {
		c.link.upload.drop(one, err)
	}
	if c.conn != nil {
		if owes {
			c.sockets.abort()
		}
		c.conn.Close()
		c.conn = nil
	}
}

// measure counts the bytes that got to the server's kernel.
func (c *connection) measure(now time.Duration) {
	if c.conn == nil {
		return
	}
	came, pending, rtt := c.sockets.look()
	c.pending = pending
	if rtt.Sending > 0 {
		c.rtt, c.leastRTT = rtt.Sending, rtt.Min
		c.link.rtt, c.link.leastRTT = c.rtt, c.leastRTT
	}
	if came > 0 {
		if c.silent {
			c.silent, c.link.waits, c.link.failures = false, 0, 0
		}
		c.got, c.heard = now, now
		c.link.upload.balance.Came(min(came, c.fresh), now)
		c.fresh -= min(came, c.fresh)
		c.link.upload.got += came
		c.pace.Add(now, came)
		c.link.Together.Add(now, came)
	}
	if c.owed() == 0 {
		c.heard = now
		c.pace.End(now)
		if !slices.ContainsFunc(c.link.connections, func(other *connection) bool { return other.owed() > 0 }) {
			c.link.Together.End(now)
		}
	}
}

// look updates the counts, and finds out whether the connection is silent.
func (c *connection) look(now time.Duration) {
	if c.conn == nil {
		return
	}
	c.measure(now)
	if c.link.upload.Rescue && now-c.heard > transfer.Silence(transfer.LeastSilence, c.rtt) {
		c.silent = true
	}
	if !c.silent && c.isStuck(now) {
		c.silent = true
		c.stuck++
	}
}

// leave makes the unfinished ranges of a connection free that is silent for long.
func (c *connection) leave(now time.Duration) {
	for now-c.heard > c.patience() && len(c.active) > 0 {
		c.link.upload.drop(c.active[0], errSilent)
	}
}

// untaken is how many bytes its requests have not handed out yet. A request that waits for the server's
// 100 (Continue) counts as none.
func (c *connection) untaken() (sum quantity.Bytes) {
	for _, one := range c.active {
		if !one.asks || one.taken > 0 {
			sum += one.Length - one.taken
		}
	}
	return sum
}

// left is how many bytes the connection has still to bring.
func (c *connection) left() quantity.Bytes { return c.untaken() + c.pending }

// owed is left without the requests that wait for a free TCP connection over HTTP/1.1.
func (c *connection) owed() quantity.Bytes {
	sum := c.left()
	for _, one := range c.active {
		if one.waits() && c.sockets.dialing.Load() == 0 {
			sum -= one.Length
		}
	}
	return sum
}

// isStuck reports whether a request waits for a free TCP connection, and those before it are lost.
func (c *connection) isStuck(now time.Duration) bool {
	waits, begun := 0, 0
	for _, one := range c.active {
		switch {
		case one.waits():
			waits++
		case c.isLost(one, now):
			begun++
		default:
			return false
		}
	}
	return waits > 0 && begun > 0
}

// isUsable reports whether it takes requests.
func (c *connection) isUsable(now time.Duration) bool {
	return c.conn != nil && !c.silent && !c.leaving && now >= c.link.waits && c.conn.Usable()
}

// isMissing reports whether it needs a new connection: it has none, or a silent one, or one that takes
// no more requests.
func (c *connection) isMissing() bool {
	return c.conn == nil || c.silent || !c.conn.Usable() && len(c.active) == 0
}

// wants reports whether it may have another request.
func (c *connection) wants(now time.Duration) bool {
	u, open := c.link.upload, c.open(now)
	switch {
	case !c.isUsable(now), slices.ContainsFunc(c.active, (*request).waits):
		return false
	case len(open) == 0:
		return !u.whole || u.free.Bytes() > 0
	case u.whole:
		return false
	case u.Rescue && u.free.Bytes() == 0:
		return !c.expects(now)
	case c.link.HasSeveral():
		return c.untaken() == 0 && c.left() < c.pipe(now)
	}
	newest := open[len(open)-1]
	return len(open) < mostRequests && float64(newest.taken) >= u.Overlap*float64(newest.Length)
}

// isLost reports whether the server may never answer a request. It has confirmed a later one, or this
// one is overdue for twice the usual time. Each time that the connection repeats the range or was
// stuck doubles that time.
func (c *connection) isLost(one *request, now time.Duration) bool {
	switch {
	case !c.link.upload.Rescue || now-one.moved <= c.patience():
		return false
	case one.id < c.answered:
		return true
	}
	sent := c.stuck
	for _, other := range c.active {
		if other.Range == one.Range {
			sent++
		}
	}
	return c.isOverdue(one, c.patience()<<min(sent, 10), now)
}

// isOverdue reports whether all sent bytes are there, and the server has not confirmed this request for
// longer than that.
func (c *connection) isOverdue(one *request, patience, now time.Duration) bool {
	return c.owed() == 0 && now-max(one.moved, c.got) > patience
}

// expects reports whether the server may soon confirm one of its requests.
func (c *connection) expects(now time.Duration) bool {
	return slices.ContainsFunc(c.open(now), func(one *request) bool { return !c.isOverdue(one, c.patience(), now) })
}

// patience is how long the server may take to confirm bytes that it has.
func (c *connection) patience() time.Duration { return transfer.Silence(patience, c.rtt) }

// open are its requests that are not lost, the oldest first.
func (c *connection) open(now time.Duration) []*request {
	isLost := func(one *request) bool { return c.isLost(one, now) }
	if !slices.ContainsFunc(c.active, isLost) {
		return c.active
	}
	return slices.DeleteFunc(slices.Clone(c.active), isLost)
}

// pipe is how many bytes it should at least have to send. Before any got through, one request is
// enough: the bytes are taken from the other links.
func (c *connection) pipe(now time.Duration) quantity.Bytes {
	rate, most := c.pace.Rate(now), schedule.MostOrder(c.pace.Total())
	if schedule.IsStarting(c.pace.Total(), rate, c.leastRTT) {
		return min(most, schedule.StartRoom(c.link.Shown.Most(), len(c.link.connections), c.rtt))
	}
	return min(most, transfer.Ahead(rate, min(c.rtt, transfer.MostRoundTrip*c.leastRTT), transfer.CheckInterval))
}

// work is its outstanding work.
func (c *connection) work(now time.Duration) schedule.Work {
	w := schedule.Work{
		Usable: c.isUsable(now) && !c.isUnanswered(now), Delay: c.leastRTT, RTT: c.leastRTT,
		Arrived: c.pace.Total(), Bandwidth: c.link.Bandwidth, Connections: 1,
	}
	if c.conn != nil && !c.silent {
		w.Left, w.Rate = c.left(), c.pace.Rate(now)
	}
	return w
}

// known is what the scheduler is told of one connection of several. Each begins as if nothing were known
// of it.
func (c *connection) known(now time.Duration) schedule.Link {
	known := c.link.known(now)
	known.Requests, known.Pace, known.Arrived = 1, c.pace.Rate(now), c.pace.Total()
	return known
}
