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
	// unsent is how much the kernel takes beyond what it can send, in bytes: with
	// more, what a connection has taken says nothing of what the link has sent.
	unsent = 64 << 10
	// connectPatience is how long a link may take to connect, and twice as long after
	// each failure, up to four times.
	connectPatience = 5 * time.Second
	// securePatience is the least time that TLS may take once TCP is connected, secureTrips
	// round trips if these are more, and twice as long each time: TCP asks later and later.
	securePatience = time.Second
	secureTrips    = 8
)

var (
	errSilent = errors.New("the link gets nothing to the server")
	// errInsecure ends an attempt beside which TCP would go on to wait.
	errInsecure = errors.New("nothing came for TLS")
)

// httpConn is a transport.Conn.
type httpConn interface {
	Put(ctx context.Context, t transport.Target, body io.Reader, part ranges.Range, size quantity.Bytes, asks bool) (code int, status string, err error)
	Exchange(ctx context.Context, q transport.Question) (transport.Answer, error)
	Usable() bool
	Received() quantity.Bytes
	Close() error
}

// connection is one of a link's connections to the server, which is made again when it
// breaks.
type connection struct {
	link *linkState
	// conn is nil while there is none.
	conn httpConn
	// sockets are its TCP connections: one, or over HTTP/1.1 a few.
	sockets *sockets
	// connecting says that a connection is made, if there is a silent one beside
	// that; abandon ends it.
	connecting bool
	abandon    context.CancelFunc
	// tries is how many attempts TLS took too long in.
	tries int
	// leaving says that it takes no more requests, and gone that it is no more.
	leaving, gone bool

	// active are its requests, the oldest first, and answered is the newest that was
	// confirmed.
	active   []*request
	answered int
	// pace is what gets to the server's kernel, and pending what was sent and did
	// not yet.
	pace    *throughput.Pace
	pending quantity.Bytes
	// fresh is how much it has taken that nobody had sent before, and that did not get there yet.
	fresh quantity.Bytes
	// got is when something got there last; heard is the same, or when nothing was
	// to, and silent says that this is too long ago.
	got, heard time.Duration
	silent     bool
	// stuck is how often it was since a range was confirmed.
	stuck         int
	rtt, leastRTT time.Duration
}

// connect has a connection made.
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
			// Nobody wants it any more, or not before another attempt.
		case errors.Is(err, errInsecure):
			c.tries++
		case c.conn != nil && u.Rescue:
			l.pause(cmp.Or(context.Cause(ctx), err)) // The silent one may go on.
		default:
			u.broken(c, cmp.Or(context.Cause(ctx), err))
		}
		u.fill()
	})
}

// attempt is for how long a connection is tried after so many failures: as published
// until TCP gives up.
func (u *upload) attempt(failures int) (context.Context, context.CancelFunc) {
	if !u.Rescue {
		return context.WithCancel(u.ctx)
	}
	return context.WithTimeoutCause(u.ctx, connectPatience<<min(failures, 2), errSilent)
}

// open makes a connection, and asks again that often if there is no answer. So many
// tries before were not answered any more once TCP was connected.
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

// install has the connection use conn. What an older one, which is silent, has to send
// others may.
func (c *connection) install(conn httpConn, opened *sockets) {
	c.close(errSilent)
	now := c.link.upload.now()
	c.conn, c.sockets, c.tries = conn, opened, 0
	c.pace = throughput.NewPace(transfer.PaceWindow)
	opened.look() // What came for TLS is nothing of the file.
	c.heard = now
	c.measure(now)
	if c.link.upload.free.Bytes() == 0 {
		opened.hurry()
	}
	c.link.Shown.Add(now, conn.Received())
}

// close closes the connection, if it is there, and ends its requests.
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

// measure takes note of what the server's kernel has got.
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

// look takes note of what has come, and whether anything does.
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

// leave lets others have what a connection owes that is silent for long.
func (c *connection) leave(now time.Duration) {
	for now-c.heard > c.patience() && len(c.active) > 0 {
		c.link.upload.drop(c.active[0], errSilent)
	}
}

// untaken is what its requests have not handed out yet. One that waits for the server owes nothing.
func (c *connection) untaken() (sum quantity.Bytes) {
	for _, one := range c.active {
		if !one.asks || one.taken > 0 {
			sum += one.Length - one.taken
		}
	}
	return sum
}

// left is what it has still to bring.
func (c *connection) left() quantity.Bytes { return c.untaken() + c.pending }

// owed is left without requests that wait for their turn: over HTTP/1.1 until another TCP connection is
// allowed, or one of a few is free.
func (c *connection) owed() quantity.Bytes {
	sum := c.left()
	for _, one := range c.active {
		if one.waits() && c.sockets.dialing.Load() == 0 {
			sum -= one.Length
		}
	}
	return sum
}

// isStuck reports whether a request waits for its turn, and those before it are lost.
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

// isMissing reports whether it needs a connection: it has none, or one that is
// silent, or that takes no more requests.
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

// isLost reports whether the server may never answer a request: it has confirmed a
// later one, or this one is overdue for twice as long as usual, and twice that for
// each time that the connection repeats the range or was stuck.
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

// isOverdue reports whether all that it sent is there, and the server does not say so
// of this request for longer than that.
func (c *connection) isOverdue(one *request, patience, now time.Duration) bool {
	return c.owed() == 0 && now-max(one.moved, c.got) > patience
}

// expects reports whether it has a request that the server may confirm soon.
func (c *connection) expects(now time.Duration) bool {
	return slices.ContainsFunc(c.open(now), func(one *request) bool { return !c.isOverdue(one, c.patience(), now) })
}

// patience is how long the server may take to confirm what it has got.
func (c *connection) patience() time.Duration { return transfer.Silence(patience, c.rtt) }

// open are its requests that are not lost, the oldest first.
func (c *connection) open(now time.Duration) []*request {
	isLost := func(one *request) bool { return c.isLost(one, now) }
	if !slices.ContainsFunc(c.active, isLost) {
		return c.active
	}
	return slices.DeleteFunc(slices.Clone(c.active), isLost)
}

// pipe is how much it should have to send at least. Before anything got through, one
// request is enough: what other links could send is not theirs any more.
func (c *connection) pipe(now time.Duration) quantity.Bytes {
	rate, most := c.pace.Rate(now), schedule.MostOrder(c.pace.Total())
	if schedule.IsStarting(c.pace.Total(), rate, c.leastRTT) {
		return min(most, schedule.StartRoom(c.link.Shown.Most(), len(c.link.connections), c.rtt))
	}
	return min(most, transfer.Ahead(rate, min(c.rtt, transfer.MostRoundTrip*c.leastRTT), transfer.CheckInterval))
}

// work is what it has to do.
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

// known is what the scheduler is told of one of several. It begins with little, as
// one of which nothing is known.
func (c *connection) known(now time.Duration) schedule.Link {
	known := c.link.known(now)
	known.Requests, known.Pace, known.Arrived = 1, c.pace.Rate(now), c.pace.Total()
	return known
}
