package link

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// leastSilence is how long a server that was connected to may be silent until another
	// way to it is tried, or silentTrips round trips if these are more.
	leastSilence = 500 * time.Millisecond
	silentTrips  = 3
	// smallAfter is how many times as long it may be silent until the same address is
	// tried with small segments, where the kernel shows no sign of a path-MTU hole.
	smallAfter = 4
	// mostSent bounds what is sent again, in bytes.
	mostSent = 16 << 10
)

// opening is the time until the first bytes come over a connection.
//
// That TCP connects proves little: behind a path-MTU hole large segments vanish. So
// where the other end stays silent, other addresses of the host are tried beside the
// first, and then small segments. They are sent the same, and the one that answers first
// becomes the connection ("happy eyeballs" to the first bytes). Only the beginning of
// TLS's handshake may be sent twice: no server does anything for it but answer.
type opening struct {
	conn   *Conn
	dialer Dialer
	// first is the way of the connection's first wire.
	first    way
	patience time.Duration
	dialing  context.Context
	cancel   context.CancelFunc

	mu sync.Mutex
	// rest are the ways that can still be tried.
	rest []way
	// sent is what was written, and set what was set.
	sent []byte
	set  []func(*wire) error
	// others are the wires that were sent the same.
	others []*wire
	// looked is how often the other end was silent for its patience.
	looked int
	timer  *time.Timer
	over   bool
}

// open watches the time until the first bytes come, of a connection that took so long.
func (c *Conn) open(d Dialer, by way, rest []way, took time.Duration) {
	o := &opening{conn: c, dialer: d, first: by, patience: max(leastSilence, silentTrips*took)}
	if o.rest = slices.Clone(rest); !by.small {
		small := by
		small.small = true
		o.rest = append(o.rest, small)
	}
	if len(o.rest) > 0 {
		o.dialing, o.cancel = context.WithCancel(context.Background())
		c.opening.Store(o)
	}
}

// apply sets something of a socket, and of the one that may take its place.
func (c *Conn) apply(set func(*wire) error) error {
	if o := c.opening.Load(); o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !o.over {
			o.set = append(o.set, set)
			for _, other := range o.others {
				_ = set(other) // One that fails does not answer.
			}
		}
	}
	return set(c.wire.Load())
}

// stays reports whether the wire is that of the connection, and has it stay.
func (c *Conn) stays(w *wire) bool {
	c.settle()
	return c.wire.Load() == w
}

// settle has no other wire take the place of the present one.
func (c *Conn) settle() {
	if o := c.opening.Load(); o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.end()
	}
}

// end ends what is under way; o.mu is held.
func (o *opening) end() {
	if o.over {
		return
	}
	o.over = true
	o.cancel()
	if o.timer != nil {
		o.timer.Stop()
	}
	for _, other := range o.others {
		other.tcp.Close()
	}
	o.others, o.sent, o.set = nil, nil, nil
	o.conn.opening.Store(nil)
}

// write writes to all wires. It reports false if nothing was written, because the present
// one stays.
func (o *opening) write(p []byte) (n int, err error, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return 0, nil, false
	}
	o.sent = append(o.sent, p...)
	if !isHandshake(o.sent) {
		o.end()
		return 0, nil, false
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(o.patience, o.silent)
	}
	for _, other := range o.others {
		_, _ = other.tcp.Write(p) // One that fails does not answer.
	}
	n, err = o.conn.wire.Load().tcp.Write(p)
	return n, err, true
}

// isHandshake reports whether bytes are the beginning of TLS's handshake, without data
// of a program (RFC 8446 5.1).
func isHandshake(sent []byte) bool {
	const header, changeCipherSpec, handshake, major = 5, 20, 22, 3
	if len(sent) > mostSent {
		return false
	}
	for len(sent) > 0 {
		if sent[0] != handshake && sent[0] != changeCipherSpec || len(sent) > 1 && sent[1] != major {
			return false
		}
		if len(sent) < header {
			return true
		}
		record := header + int(sent[3])<<8 + int(sent[4])
		sent = sent[min(record, len(sent)):]
	}
	return true
}

// silent tries another way.
func (o *opening) silent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || len(o.rest) == 0 {
		return
	}
	o.looked++
	next := o.rest[0]
	if next.small && next.address == o.first.address && o.looked < smallAfter && !o.conn.isHoled(0) {
		o.timer.Reset(o.patience)
		return
	}
	o.rest = o.rest[1:]
	go o.try(next)
	o.timer.Reset(o.patience)
}

// try connects by another way, sends the same, and waits for an answer.
func (o *opening) try(by way) {
	tcp, err := o.dialer.connect(o.dialing, by)
	if err != nil {
		o.failed()
		return
	}
	other, err := newWire(tcp)
	if err != nil || !o.join(other) {
		tcp.Close()
		return
	}
	if !isReadable(other) {
		tcp.Close()
		o.failed()
		return
	}
	o.win(other, by)
}

// failed has the next way be tried at once.
func (o *opening) failed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.timer.Reset(0)
	}
}

// join sends over another wire what was sent. It reports false if that is too late.
func (o *opening) join(other *wire) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return false
	}
	for _, set := range o.set {
		_ = set(other) // One that fails does not answer.
	}
	_, _ = other.tcp.Write(o.sent)
	o.others = append(o.others, other)
	return true
}

// isReadable waits for the first bytes, and leaves them where they are.
func isReadable(w *wire) bool {
	var n int
	err := w.raw.Read(func(fd uintptr) bool {
		var peekErr error
		n, _, peekErr = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return peekErr != unix.EAGAIN && peekErr != unix.EINTR
	})
	return err == nil && n > 0
}

// win makes a wire that of the connection.
func (o *opening) win(other *wire, by way) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	switch memory := o.dialer.Memory; {
	case by.small:
		memory.hasHole(by.address)
	case o.conn.isHoled(0):
		memory.hasHole(o.first.address)
	default:
		memory.isLate(o.first.address)
	}
	o.others = slices.DeleteFunc(o.others, func(w *wire) bool { return w == other })
	o.conn.wire.Swap(other).tcp.Close()
	o.end()
}
