package upload

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
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
	// ahead is how much more than a round trip brings a connection has to send at
	// least.
	ahead = 1.25
	// mostQueue is how many round trips without a queue count at most as one.
	mostQueue = 4
)

var (
	errGone   = errors.New("the connection is not used any more")
	errSilent = errors.New("the link gets nothing to the server")
	// errInsecure ends an attempt beside which TCP would go on to wait.
	errInsecure = errors.New("nothing came for TLS")
)

// connection is a transport.Conn.
type connection interface {
	Put(ctx context.Context, t transport.Target, body io.Reader, part ranges.Range, size quantity.Bytes) (code int, status string, err error)
	Exchange(ctx context.Context, q transport.Question) (transport.Answer, error)
	Usable() bool
	Received() quantity.Bytes
	Close() error
}

// lane is a connection of a link, or over HTTP/1.1 a few.
type lane struct {
	link *linkState
	// conn is nil while there is none.
	conn connection
	// sockets are its network connections.
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
	// got is when something got there last; heard is the same, or when nothing was
	// to, and silent says that this is too long ago.
	got, heard    time.Duration
	silent        bool
	rtt, leastRTT time.Duration
}

// sockets are the network connections of a lane.
type sockets struct {
	mu  sync.Mutex
	all []*socket
}

// socket counts what is written.
type socket struct {
	link.Socket
	written      atomic.Int64
	acknowledged uint64
}

func (s *socket) Write(p []byte) (int, error) {
	s.written.Add(int64(len(p)))
	return s.Socket.Write(p)
}

// look is what has come since the last look, and what is still to come.
func (s *sockets) look() (came, pending quantity.Bytes, rtt link.RoundTrip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(one *socket) bool {
		written := one.written.Load()
		told, err := one.RoundTrip()
		if err != nil {
			return true // It is closed.
		}
		came += quantity.Bytes(told.Acknowledged - one.acknowledged)
		pending += max(0, quantity.Bytes(written)-quantity.Bytes(told.Acknowledged))
		one.acknowledged, rtt = told.Acknowledged, told
		return false
	})
	return came, pending, rtt
}

// hurry has what is written sent at once: nothing will follow that would fill a
// segment.
func (s *sockets) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if bulk, ok := one.Socket.(link.Sender); ok {
			_ = bulk.FillSegments(false) // A failure means a closed connection.
		}
	}
}

// abort closes them, and has the kernel send no more of what they have.
func (s *sockets) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if bulk, ok := one.Socket.(link.Sender); ok {
			_ = bulk.DiscardUnsent() // A failure means a closed connection.
		}
		one.Close()
	}
}

// connect has a connection made.
func (n *lane) connect() {
	l, u := n.link, n.link.upload
	n.connecting = true
	between := time.Duration(0)
	switch {
	case u.Rescue && n.rtt > 0:
		between = max(look, n.rtt/2)
	case u.Rescue:
		between = firstPause
	}
	ctx, cancel := u.attempt(l.failures)
	n.abandon = cancel
	tries := n.tries
	u.running.Go(func() {
		defer cancel()
		conn, opened, err := l.open(ctx, between, tries)
		u.mu.Lock()
		defer u.mu.Unlock()
		n.connecting = false
		switch needed := u.ctx.Err() == nil && !n.gone && n.isMissing(); {
		case err == nil && needed:
			n.install(conn, opened)
		case err == nil:
			conn.Close()
		case !needed || errors.Is(context.Cause(ctx), context.Canceled):
			// Nobody wants it any more, or not before another attempt.
		case errors.Is(err, errInsecure):
			n.tries++
		case n.conn != nil && u.Rescue:
			l.pause(cmp.Or(context.Cause(ctx), err)) // The silent one may go on.
		default:
			u.broken(n, cmp.Or(context.Cause(ctx), err))
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
func (l *linkState) open(ctx context.Context, between time.Duration, tries int) (connection, *sockets, error) {
	opened := &sockets{}
	dial := func(ctx context.Context) (link.Socket, error) {
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
		return &socket{Socket: below}, nil
	}
	kept := func(below link.Socket, err error) (link.Socket, error) {
		if err == nil {
			opened.mu.Lock()
			defer opened.mu.Unlock()
			opened.all = append(opened.all, below.(*socket))
		}
		return below, err
	}
	first, err := kept(download.Repeated(ctx, dial, between))
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
	conn, err := transport.Open(secure, first, again, l.upload.TLS, l.upload.URL)
	if err != nil && ctx.Err() == nil && secure.Err() != nil {
		err = errInsecure
	}
	return conn, opened, err
}

// install makes the connection that of the lane. What an older one, which is
// silent, has to send others may.
func (n *lane) install(conn connection, opened *sockets) {
	n.close(errSilent)
	now := n.link.upload.now()
	n.conn, n.sockets, n.tries = conn, opened, 0
	n.pace = throughput.NewPace(download.PaceWindow)
	opened.look() // What came for TLS is nothing of the file.
	n.heard = now
	n.measure(now)
	if n.link.upload.free.Bytes() == 0 {
		opened.hurry()
	}
	n.link.shown.Add(now, conn.Received())
}

// close ends the lane's connection, if there is one, and its requests.
func (n *lane) close(err error) {
	owes := n.left() > 0
	n.silent, n.pending = false, 0
	for _, one := range slices.Clone(n.active) {
		n.link.upload.drop(one, err)
	}
	if n.conn != nil {
		if owes {
			n.sockets.abort()
		}
		n.conn.Close()
		n.conn = nil
	}
}

// measure takes note of what the server's kernel has got.
func (n *lane) measure(now time.Duration) {
	if n.conn == nil {
		return
	}
	came, pending, rtt := n.sockets.look()
	n.pending = pending
	if rtt.Sending > 0 {
		n.rtt, n.leastRTT = rtt.Sending, rtt.Min
		n.link.rtt, n.link.leastRTT = n.rtt, n.leastRTT
	}
	if came > 0 {
		if n.silent {
			n.silent, n.link.waits, n.link.failures = false, 0, 0
		}
		n.got, n.heard, n.link.upload.moved = now, now, now
		n.link.upload.got += came
		n.pace.Add(now, came)
		n.link.together.Add(now, came)
	}
	if n.left() == 0 {
		n.heard = now
		n.pace.End(now)
		if !slices.ContainsFunc(n.link.lanes, func(other *lane) bool { return other.left() > 0 }) {
			n.link.together.End(now)
		}
	}
}

// look takes note of what has come, and whether anything does.
func (n *lane) look(now time.Duration) {
	if n.conn == nil {
		return
	}
	n.measure(now)
	if n.link.upload.Rescue && now-n.heard > max(download.LeastSilence, download.SilentTrips*n.rtt) {
		n.silent = true
	}
}

// leave lets others have what a connection owes that is silent for long.
func (n *lane) leave(now time.Duration) {
	for now-n.heard > n.patience() && len(n.active) > 0 {
		n.link.upload.drop(n.active[0], errSilent)
	}
}

// untaken is what its requests have not handed out yet.
func (n *lane) untaken() (sum quantity.Bytes) {
	for _, one := range n.active {
		sum += one.Length - one.taken
	}
	return sum
}

// left is what it has still to bring.
func (n *lane) left() quantity.Bytes { return n.untaken() + n.pending }

// isUsable reports whether it takes requests.
func (n *lane) isUsable(now time.Duration) bool {
	return n.conn != nil && !n.silent && !n.leaving && now >= n.link.waits && n.conn.Usable()
}

// isMissing reports whether it needs a connection: it has none, or one that is
// silent, or that takes no more requests.
func (n *lane) isMissing() bool {
	return n.conn == nil || n.silent || !n.conn.Usable() && len(n.active) == 0
}

// wants reports whether it may have another request.
func (n *lane) wants(now time.Duration) bool {
	u, open := n.link.upload, n.open(now)
	switch {
	case !n.isUsable(now):
		return false
	case len(open) == 0:
		return !u.whole || u.free.Bytes() > 0
	case u.whole:
		return false
	case u.Rescue && u.free.Bytes() == 0:
		return !n.expects(now)
	case n.link.growth != nil:
		return n.untaken() == 0 && n.left() < n.pipe(now)
	}
	newest := open[len(open)-1]
	return len(open) < mostRequests && float64(newest.taken) >= u.Overlap*float64(newest.Length)
}

// isLost reports whether the server may never answer a request: it has confirmed a
// later one, or this one is overdue for twice as long as usual, and twice that for
// each time that the connection repeats the range.
func (n *lane) isLost(one *request, now time.Duration) bool {
	switch {
	case !n.link.upload.Rescue || now-one.moved <= n.patience():
		return false
	case one.id < n.answered:
		return true
	}
	sent := 0
	for _, other := range n.active {
		if other.Range == one.Range {
			sent++
		}
	}
	return n.isOverdue(one, n.patience()<<min(sent, 10), now)
}

// isOverdue reports whether all that it sent is there, and the server does not say so
// of this request for longer than that.
func (n *lane) isOverdue(one *request, patience, now time.Duration) bool {
	return n.left() == 0 && now-max(one.moved, n.got) > patience
}

// expects reports whether it has a request that the server may confirm soon.
func (n *lane) expects(now time.Duration) bool {
	return slices.ContainsFunc(n.open(now), func(one *request) bool { return !n.isOverdue(one, n.patience(), now) })
}

// patience is how long the server may take to confirm what it has got.
func (n *lane) patience() time.Duration { return max(patience, download.SilentTrips*n.rtt) }

// open are its requests that are not lost, the oldest first.
func (n *lane) open(now time.Duration) []*request {
	isLost := func(one *request) bool { return n.isLost(one, now) }
	if !slices.ContainsFunc(n.active, isLost) {
		return n.active
	}
	return slices.DeleteFunc(slices.Clone(n.active), isLost)
}

// pipe is how much it should have to send at least. Before anything got through, one
// request is enough: what other links could send is not theirs any more.
func (n *lane) pipe(now time.Duration) quantity.Bytes {
	rate, most := n.pace.Rate(now), schedule.MostOrder(n.pace.Total())
	if schedule.IsStarting(n.pace.Total(), rate, n.leastRTT) {
		return min(most, schedule.StartRoom(n.link.shown.Most(), len(n.link.lanes), n.rtt))
	}
	return min(most, quantity.Bytes((ahead*rate).Over(min(n.rtt, mostQueue*n.leastRTT))+rate.Over(look)))
}

// work is what it has to do.
func (n *lane) work(now time.Duration) schedule.Work {
	w := schedule.Work{
		Usable: n.isUsable(now) && !n.isUnanswered(now), Delay: n.leastRTT, RTT: n.leastRTT,
		Arrived: n.pace.Total(), Bandwidth: n.link.Bandwidth, Connections: 1,
	}
	if n.conn != nil && !n.silent {
		w.Left, w.Rate = n.left(), n.pace.Rate(now)
	}
	return w
}

// known is what the scheduler is told of one of several. It begins with little, as
// one of which nothing is known.
func (n *lane) known(now time.Duration) schedule.Link {
	known := n.link.known(now)
	known.Requests, known.Pace, known.Arrived = 1, n.pace.Rate(now), n.pace.Total()
	return known
}
