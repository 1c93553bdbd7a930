package link

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Conn is a TCP connection that reads in large batches (see reader).
type Conn struct {
	wires  wires
	reader reader

	mu sync.Mutex
	// isQuiet is true if the other end has nothing to send.
	isQuiet bool
	// left says that the connection is no longer counted in the Room.
	left bool
}

func newConn(under *wire, address netip.Addr, d Dialer, room *Room) *Conn {
	c := &Conn{}
	c.wires.address, c.wires.memory, c.wires.room = address, d.Memory, room
	c.wires.now.Store(under)
	c.reader.wires, c.reader.fewAcks = &c.wires, d.FewAcks
	d.Memory.add(&c.wires)
	room.enter()
	return c
}

// Await tells how many bytes the requests in flight still get before the next decision, and
// before all of them end.
func (c *Conn) Await(decision, end quantity.Bytes) { c.reader.await(decision, end) }

// Read returns buffered bytes, or waits for new ones.
func (c *Conn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// Trial returns nil: only a Pacer adds a Trial.
func (*Conn) Trial() *Trial { return nil }

func (c *Conn) Write(p []byte) (int, error) {
	if o := c.wires.opening.Load(); o != nil {
		if n, err, done := o.write(p); done {
			return n, err
		}
	}
	return c.wires.now.Load().tcp.Write(p)
}

func (c *Conn) Close() error {
	c.wires.settle()
	c.wires.memory.closing(&c.wires)
	err := c.wires.now.Load().tcp.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.left {
		c.left = true
		c.wires.room.leave()
	}
	return err
}

func (c *Conn) CloseWrite() error {
	c.wires.settle()
	return c.wires.now.Load().tcp.CloseWrite()
}

func (c *Conn) LocalAddr() net.Addr  { return c.wires.now.Load().tcp.LocalAddr() }
func (c *Conn) RemoteAddr() net.Addr { return c.wires.now.Load().tcp.RemoteAddr() }
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.wires.now.Load().tcp.SetWriteDeadline(t)
}

// SetReadDeadline fails, because the connection sets its own read deadlines.
func (c *Conn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetDeadline fails, because the connection sets its own read deadlines.
func (c *Conn) SetDeadline(time.Time) error { return os.ErrNoDeadline }
