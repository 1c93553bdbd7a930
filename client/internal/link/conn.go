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
	// maxBatch and minBatch limit SO_RCVLOWAT of a busy connection, in bytes. With 256 KiB
	// and a patience of 20 ms, Linux' receive buffer grows too slowly: 250 MB at 79 Mbit/s
	// and an RTT of 15 ms took 26.52 s instead of 26.27 s.
	maxBatch = 128 << 10
	minBatch = 16 << 10
	// recordSize is the largest TLS record, in bytes. So many bytes may have left the socket
	// before they reach the requests.
	recordSize = 5 + 16<<10 + 256
	// patience is how long less than a batch waits for further bytes.
	patience = 10 * time.Millisecond
)

// epoch is the origin of all deadlines. They are multiples of patience after it, so that one
// wake-up serves all links.
var epoch = time.Now()

// Conn is a TCP connection that reads in large batches.
//
// A reader that wakes for every segment spends most of its time in system calls. That costs
// the battery of a phone. It costs a User Mode Linux guest most of its speed, because each
// system call is a ptrace stop there. While bytes flow and many are awaited, the socket wakes
// the reader for a batch or after patience. One read takes all bytes into a block, from which
// TLS reads. A connection holds a block only while it has unread bytes, because most
// connections wait for some.
type Conn struct {
	wire atomic.Pointer[wire]
	// opening is nil once the wire cannot change any more.
	opening atomic.Pointer[opening]
	// address is the other end's address. memory learns how it works.
	address netip.Addr
	memory  *Memory
	// fewAcks is Dialer.FewAcks.
	fewAcks bool

	// The fields up to total belong to the reader.
	block  *block.Block // nil if nothing is unread
	unread []byte       // part of block
	// drained is true if the last read emptied the socket.
	drained bool
	// total counts the received bytes of a young connection.
	total quantity.Bytes

	mu sync.Mutex
	// batch is the size of a batch that is worth waiting for, 0 if none is.
	batch int
	// mark is the value of SO_RCVLOWAT while the reader waits for batches, else 0.
	mark int
	// due is the end of the wait for a batch.
	due time.Time
	// isQuiet is true if the other end has nothing to send.
	isQuiet bool
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

// set sets a numeric socket option.
func (w *wire) set(level, option, value int) (err error) {
	if err := w.raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); err != nil {
		return err
	}
	return os.NewSyscallError("setsockopt", err)
}

func newConn(under *wire, address netip.Addr, d Dialer) *Conn {
	c := &Conn{address: address, memory: d.Memory, fewAcks: d.FewAcks}
	c.wire.Store(under)
	c.memory.add(c)
	return c
}

// Await tells how many bytes the requests in flight still get before the next decision, and
// before all of them end. The reader reads in batches that make the decision neither late nor
// much early. It reads the last bytes as they arrive, because nothing would complete a batch.
func (c *Conn) Await(decision, end quantity.Bytes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batch = int(min(max(decision-recordSize, minBatch), end-recordSize, maxBatch))
	if c.batch < minBatch {
		c.batch = 0
	}
	// The reader itself raises the mark from 0, because it knows that bytes flow. Other
	// changes wait until they are worth a system call.
	if c.batch < c.mark || c.mark > 0 && c.batch >= 2*c.mark {
		c.setMark(c.batch)
	}
}

// Owes turns TCP's keep-alive on while the other end has something to send. Go's dialer
// turns it on for every connection.
func (c *Conn) Owes(something bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isQuiet == something {
		c.isQuiet = !something
		// This fails only on a closed connection, which the reader reports.
		_ = c.apply(func(w *wire) error { return w.tcp.SetKeepAlive(something) })
	}
}

// AskSoon sends a keep-alive probe if nothing has arrived for idle. It ends the connection if
// nothing arrives for as long again, or if what was sent is not acknowledged. TCP alone
// repeats unacknowledged bytes for a quarter of an hour, and sends no probe meanwhile.
func (c *Conn) AskSoon(idle time.Duration) error {
	return c.apply(func(w *wire) error {
		if err := w.set(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(2*idle.Milliseconds())); err != nil {
			return err
		}
		return w.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: idle / 5, Count: 5})
	})
}

// Ask sends keep-alive probes soon. TCP keeps a connection without answer for two minutes:
// the caller decides how long to wait for a link.
func (c *Conn) Ask() error {
	return c.apply(func(w *wire) error {
		return w.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 120})
	})
}

// setMark waits for batches of mark bytes, or for any byte if mark is 0. A lower mark wakes a
// reader that has enough bytes now.
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
	// This fails only on a closed connection, which the reader reports.
	_ = c.wire.Load().set(unix.SOL_SOCKET, unix.SO_RCVLOWAT, max(mark, 1))
}

// extend moves the end of a wait for a batch to the end of the next period. The deadline
// stays there whatever arrives, so there is one timer for each period and not for each read.
func (c *Conn) extend() {
	c.due = c.due.Add(patience)
	_ = c.wire.Load().tcp.SetReadDeadline(c.due)
}

// Read returns buffered bytes, or waits for new ones.
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

// release gives an empty block back.
func (c *Conn) release() {
	block.Put(c.block)
	c.block, c.unread = nil, nil
}

// fill waits for bytes and reads them all. First it lets the readers of the last bytes run:
// if bytes arrive faster than they are used, as many would pile up in net/http as package
// transport allows.
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
				c.release() // Another wire receives the same bytes from the beginning.
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
				c.memory.remove(c)
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

// receive waits until the socket is readable, and reads. It omits the first read if the socket
// is known to hold no batch. A wake-up since the last read is then missed, but the next
// segment causes another one, or the deadline ends the wait.
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

// receiveOverdue reads what arrived before the deadline. SO_RCVLOWAT does not limit a read. If
// nothing arrived, the flow has stopped, and the next wait has no deadline.
func (c *Conn) receiveOverdue(w *wire) (n int, err error) {
	if controlErr := w.raw.Control(func(fd uintptr) { n, err = c.read(fd) }); controlErr != nil {
		return 0, controlErr
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mark == 0: // Switched off while the deadline passed.
	case err == unix.EAGAIN:
		c.setMark(0)
	default:
		c.extend()
	}
	return n, err
}

// read reads available bytes into a block without waiting. RawSyscall does not tell Go's
// scheduler of a system call that might block: the runtime would wake its monitor thread.
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
				// This holds once: Linux soon acknowledges at once again.
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

// Trial returns nil: only a Pacer adds a Trial.
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
	c.memory.closing(c)
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

// SetReadDeadline fails, because the connection sets its own read deadlines.
func (c *Conn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetDeadline fails, because the connection sets its own read deadlines.
func (c *Conn) SetDeadline(time.Time) error { return os.ErrNoDeadline }
