package link

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Owes turns TCP's keep-alive on while the other end has something to send. Go's dialer
// turns it on for every connection.
func (c *Conn) Owes(something bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isQuiet == something {
		c.isQuiet = !something
		// This fails only on a closed connection, which the reader reports.
		_ = c.wires.apply(func(w *wire) error { return w.tcp.SetKeepAlive(something) })
	}
}

// AskSoon sends a keep-alive probe if nothing has arrived for idle. It ends the connection if
// nothing arrives for as long again, or if what was sent is not acknowledged. TCP alone
// repeats unacknowledged bytes for a quarter of an hour, and sends no probe meanwhile.
func (c *Conn) AskSoon(idle time.Duration) error {
	return c.wires.apply(func(w *wire) error {
		if err := w.set(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(2*idle.Milliseconds())); err != nil {
			return err
		}
		return w.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: idle / 5, Count: 5})
	})
}

// Ask sends keep-alive probes soon. TCP keeps a connection without answer for two minutes:
// the caller decides how long to wait for a link.
func (c *Conn) Ask() error {
	return c.wires.apply(func(w *wire) error {
		return w.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 120})
	})
}

// LimitUnsent limits how many bytes the kernel takes that it cannot send yet. Then the bytes
// that it has taken are in flight.
func (c *Conn) LimitUnsent(bytes int) error {
	return c.wires.apply(func(w *wire) error { return w.set(unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) })
}

// FillSegments with always true sends no partial segment while bytes are in flight (RFC 896).
// With false, the default, every write is sent at once.
func (c *Conn) FillSegments(always bool) error {
	return c.wires.apply(func(w *wire) error { return w.tcp.SetNoDelay(!always) })
}

// DiscardUnsent makes Close discard the bytes that the other end's kernel does not have. By
// default the kernel continues to send them.
func (c *Conn) DiscardUnsent() error {
	return c.wires.apply(func(w *wire) error { return w.tcp.SetLinger(0) })
}
