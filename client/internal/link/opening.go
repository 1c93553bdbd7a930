package link

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// leastSilence is how long a connected server may be silent before another way to it is
	// tried. It is silentTrips round trips if these are longer.
	leastSilence = 500 * time.Millisecond
	silentTrips  = 3
	// smallAfter is the factor by which it may be silent longer before the same address is
	// tried with small segments. It does not apply if the kernel shows a path-MTU black hole.
	smallAfter = 4
	// mostSent limits what is sent again, in bytes.
	mostSent = 16 << 10
)

// opening watches a connection until its first bytes arrive.
//
// A TCP connection proves little: in a path-MTU black hole large segments vanish. If the other
// end stays silent, other addresses of the host are tried in parallel, and then small segments.
// All get the same bytes, and the first that answers becomes the connection ("happy eyeballs"
// up to the first bytes). Only the beginning of a TLS handshake may be sent twice, because a
// server does nothing for it but answer.
type opening struct {
	wires  *wires
	dialer Dialer
	// first is the way of the connection's first wire.
	first    way
	patience time.Duration
	dialing  context.Context
	cancel   context.CancelFunc

	mu sync.Mutex
	// rest are the ways that were not tried yet.
	rest []way
	// sent holds the bytes that were written. set holds the options that were set.
	sent []byte
	set  []func(*wire) error
	// others are the other wires, which got the same bytes.
	others []*wire
	// silences counts how often the other end was silent for patience.
	silences int
	timer    *time.Timer
	over     bool
}

// end closes the other wires; o.mu is held.
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
	o.wires.opening.Store(nil)
}

// write writes to all wires. It returns done false and writes nothing if the opening is over.
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
		_, _ = other.tcp.Write(p) // A wire that fails does not answer.
	}
	n, err = o.wires.now.Load().tcp.Write(p)
	return n, err, true
}

// isHandshake reports whether bytes are the beginning of a TLS handshake, without data of a
// program (RFC 8446 5.1).
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

// silent tries another way after a silence.
func (o *opening) silent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || len(o.rest) == 0 {
		return
	}
	o.silences++
	next := o.rest[0]
	if next.small && next.address == o.first.address && o.silences < smallAfter && !o.wires.now.Load().isBlackHole(0) {
		o.timer.Reset(o.patience)
		return
	}
	o.timer.Reset(o.patience)
	if !o.wires.room.admit(o) {
		return
	}
	o.rest = o.rest[1:]
	go func() {
		defer o.wires.room.tried(o)
		o.try(next)
	}()
}

// try connects by another way, sends the same bytes, and waits for an answer.
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

// failed lets the next way be tried at once.
func (o *opening) failed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.timer.Reset(0)
	}
}

// join sends the bytes so far over another wire. It returns false if the opening is over.
func (o *opening) join(other *wire) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return false
	}
	for _, set := range o.set {
		_ = set(other) // A wire that fails does not answer.
	}
	_, _ = other.tcp.Write(o.sent)
	o.others = append(o.others, other)
	return true
}

// isReadable waits for the first bytes without reading them.
func isReadable(w *wire) bool {
	var n int
	err := w.raw.Read(func(fd uintptr) bool {
		var peekErr error
		n, _, peekErr = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return peekErr != unix.EAGAIN && peekErr != unix.EINTR
	})
	return err == nil && n > 0
}

// win makes another wire that of the connection.
func (o *opening) win(other *wire, by way) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	switch memory := o.dialer.Memory; {
	case by.small:
		memory.noteBlackHole(by.address)
	case o.wires.now.Load().isBlackHole(0):
		memory.noteBlackHole(o.first.address)
	default:
		memory.noteLate(o.first.address)
	}
	o.others = slices.DeleteFunc(o.others, func(w *wire) bool { return w == other })
	o.wires.now.Swap(other).tcp.Close()
	o.end()
}
