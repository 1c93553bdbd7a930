package link

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
)

const (
	// maxBatch and minBatch bound SO_RCVLOWAT of a connection in bulk, in
	// bytes. With 256 KiB and 20 ms of patience Linux' receive buffer grows
	// too slowly: 250 MB at 79 Mbit/s and an RTT of 15 ms took 26.52 s
	// instead of 26.27 s.
	maxBatch = 128 << 10
	minBatch = 16 << 10
	// recordSize is the largest TLS record, in bytes: so much can have left
	// the socket without having reached the requests.
	recordSize = 5 + 16<<10 + 256
	// patience is how long data that are less than a batch wait for more.
	patience = 10 * time.Millisecond
)

// epoch is the origin of all deadlines. They are multiples of patience from
// it, so that one wake-up serves all links.
var epoch = time.Now()

// Conn is a TCP connection that reads in large batches.
//
// A reader that wakes for every segment spends most of its time in system
// calls, which costs a phone battery and a User Mode Linux guest, where each
// is a ptrace stop, most of its speed. While data flow and much is awaited,
// the socket wakes the reader only for a batch or after patience, and a read
// takes all there is into a block from which TLS is served. There is a block
// while there are data in it: most connections wait for some.
type Conn struct {
	wire atomic.Pointer[wire]
	// opening is nil once the wire stays.
	opening atomic.Pointer[opening]
	// address is the other end's, and memory is told of it.
	address netip.Addr
	memory  *Memory
	// fewAcks is of the Dialer.
	fewAcks bool

	// Of the reader alone.
	block  *block.Block // nil if nothing is unread
	unread []byte       // part of block
	// drained says that the last read left nothing in the socket.
	drained bool
	// total is how much was received while the connection is young.
	total quantity.Bytes

	mu sync.Mutex
	// batch is the size of batch that is worth waiting for, 0 if none is.
	batch int
	// mark is SO_RCVLOWAT while batches are waited for, else 0.
	mark int
	// due is when a wait for a batch ends.
	due time.Time
	// settled says that the other end owes nothing.
	settled bool
}

// wire is a connection of the kernel.
type wire struct {
	tcp *net.TCPConn
	raw syscall.RawConn
}

func newWire(tcp *net.TCPConn) (*wire, error) {
	raw, err := tcp.SyscallConn()
	return &wire{tcp, raw}, err
}

// set sets a socket option that is a number.
func (w *wire) set(level, option, value int) (err error) {
	if err := w.raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); err != nil {
		return err
	}
	return os.NewSyscallError("setsockopt", err)
}

func newConn(under *wire, address netip.Addr, d Dialer) *Conn {
	c := &Conn{address: address, memory: d.Memory, fewAcks: d.FewAcks}
	c.wire.Store(under)
	c.memory.born(c)
	return c
}

// Await says how many bytes must still reach the requests in flight before
// the next decision, and before all of them have ended. Data are read in
// batches that make the decision neither late nor much early, and the last
// ones as they come, since nothing follows that would complete a batch.
func (c *Conn) Await(decision, end quantity.Bytes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batch = int(min(max(decision-recordSize, minBatch), end-recordSize, maxBatch))
	if c.batch < minBatch {
		c.batch = 0
	}
	// Raising the mark waits for the reader, which knows that data flow, and
	// for a change that is worth a system call.
	if c.batch < c.mark || c.mark > 0 && c.batch >= 2*c.mark {
		c.setMark(c.batch)
	}
}

// Owes has TCP ask whether the other end is there, as Go's dialer has it do,
// while it owes something.
func (c *Conn) Owes(something bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled == something {
		c.settled = !something
		// A failure means a closed connection, which the reader reports.
		_ = c.apply(func(w *wire) error { return w.tcp.SetKeepAlive(something) })
	}
}

// AskSoon has it ask when nothing has come for idle, and end a connection from
// which nothing comes for as long again; also one that does not acknowledge what
// was sent, which TCP repeats for a quarter of an hour and does not ask beside.
func (c *Conn) AskSoon(idle time.Duration) error {
	return c.apply(func(w *wire) error {
		if err := w.set(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(2*idle.Milliseconds())); err != nil {
			return err
		}
		return w.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: idle / 5, Count: 5})
	})
}

// Ask has TCP ask soon. It goes on with a connection that does not answer for two
// minutes: others decide how long to wait for a link.
func (c *Conn) Ask() error {
	return c.apply(func(w *wire) error {
		return w.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 120})
	})
}

// setMark waits for batches of mark bytes, or for any byte if mark is 0.
// Lowering the mark wakes a reader for which there is enough now.
func (c *Conn) setMark(mark int) {
	switch {
	case mark == 0:
		_ = c.wire.Load().tcp.SetReadDeadline(time.Time{})
	case c.mark == 0:
		periods := (time.Since(epoch) + patience/2) / patience
		c.due = epoch.Add(periods * patience)
		c.extend()
	}
	c.mark = mark
	// A failure means a closed connection, which the reader reports.
	_ = c.wire.Load().set(unix.SOL_SOCKET, unix.SO_RCVLOWAT, max(mark, 1))
}

// extend lets a wait for a batch last until the next period ends. The
// deadline stands until then whatever arrives: one timer per period, however
// many reads there are.
func (c *Conn) extend() {
	c.due = c.due.Add(patience)
	_ = c.wire.Load().tcp.SetReadDeadline(c.due)
}

// Read returns buffered data, or waits for more.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(c.unread) == 0 {
		n, err := c.fill()
		if err != nil {
			return 0, err
		}
		c.unread = c.block[:n]
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	if len(c.unread) == 0 {
		c.release()
	}
	return n, nil
}

// release gives the block back, in which nothing is unread.
func (c *Conn) release() {
	block.Put(c.block)
	c.block, c.unread = nil, nil
}

// fill waits for data and takes what there is. Before, it lets those run who
// wait for what came last: where data come faster than they are used, as much
// would else pile up in net/http as package transport allows.
func (c *Conn) fill() (int, error) {
	runtime.Gosched()
	for {
		w := c.wire.Load()
		n, err := c.receive(w, c.drained && c.isBatching())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = c.receiveOverdue(w)
		}
		if err != unix.EAGAIN && !c.stays(w) {
			if n > 0 {
				c.release() // Another one brings the same from its beginning.
			}
			continue
		}
		switch {
		case err == unix.EAGAIN:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		c.drained = n < block.Size
		if c.total <= youngest {
			if c.total += quantity.Bytes(n); c.total > youngest {
				c.memory.grown(c)
			}
		}
		c.mu.Lock()
		if c.mark == 0 && c.batch > 0 {
			c.setMark(c.batch)
		}
		c.mu.Unlock()
		return n, nil
	}
}

func (c *Conn) isBatching() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark > 0
}

// receive waits until the socket is readable and reads. If the socket is
// known to hold no batch, the read that would say so is left out. Then a
// wake-up that came since the last read goes unnoticed, but the next segment
// brings another, or the deadline ends the wait.
func (c *Conn) receive(w *wire, drained bool) (n int, err error) {
	waitErr := w.raw.Read(func(fd uintptr) bool {
		if drained {
			drained = false
			return false
		}
		n, err = c.read(fd)
		return err != unix.EAGAIN
	})
	if waitErr != nil {
		return 0, waitErr
	}
	return n, err
}

// receiveOverdue reads what arrived before the deadline passed; a read is
// not bound by the low-water mark. If that is nothing, the flow has stopped,
// and what follows is waited for without a deadline.
func (c *Conn) receiveOverdue(w *wire) (n int, err error) {
	if controlErr := w.raw.Control(func(fd uintptr) { n, err = c.read(fd) }); controlErr != nil {
		return 0, controlErr
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mark == 0: // switched off while the deadline passed
	case err == unix.EAGAIN:
		c.setMark(0)
	default:
		c.extend()
	}
	return n, err
}

// read reads without waiting, into a block if there is something. It spares the
// scheduler the notice of a system call that might block, which the runtime
// answers by waking its monitor thread.
func (c *Conn) read(fd uintptr) (n int, err error) {
	c.block = block.Get()
	defer func() {
		if n == 0 {
			c.release()
		}
	}()
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(c.block)), block.Size)
		switch errno {
		case 0:
			if c.fewAcks {
				// For one time: Linux goes back to acknowledging at once by itself.
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0)
			}
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, unix.EAGAIN
		default:
			return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("read", errno)}
		}
	}
}

// Trial is nil: it is of those who pace it.
func (*Conn) Trial() *Trial { return nil }

func (c *Conn) Write(p []byte) (int, error) {
	if o := c.opening.Load(); o != nil {
		if n, err, done := o.write(p); done {
			return n, err
		}
	}
	return c.wire.Load().tcp.Write(p)
}

func (c *Conn) Close() error {
	c.settle()
	c.memory.leaves(c)
	return c.wire.Load().tcp.Close()
}

func (c *Conn) CloseWrite() error {
	c.settle()
	return c.wire.Load().tcp.CloseWrite()
}

func (c *Conn) LocalAddr() net.Addr  { return c.wire.Load().tcp.LocalAddr() }
func (c *Conn) RemoteAddr() net.Addr { return c.wire.Load().tcp.RemoteAddr() }
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.wire.Load().tcp.SetWriteDeadline(t)
}

// SetReadDeadline is refused: the connection times its own reads.
func (c *Conn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetDeadline is refused: the connection times its own reads.
func (c *Conn) SetDeadline(time.Time) error { return os.ErrNoDeadline }
