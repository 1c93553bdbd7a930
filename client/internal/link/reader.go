package link

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
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

// reader reads a connection in large batches.
//
// A reader that wakes for every segment spends most of its time in system calls. That costs
// the battery of a phone. It costs a User Mode Linux guest most of its speed, because each
// system call is a ptrace stop there. While bytes flow and many are awaited, the socket wakes
// the reader for a batch or after patience. One read takes all bytes into a block, from which
// TLS reads. A connection holds a block only while it has unread bytes, because most
// connections wait for some.
type reader struct {
	wires *wires
	// fewAcks is Dialer.FewAcks.
	fewAcks bool

	// The fields up to total belong to the goroutine that reads.
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
}

// await tells how many bytes the requests in flight still get before the next decision, and
// before all of them end. The reader reads in batches that make the decision neither late nor
// much early. It reads the last bytes as they arrive, because nothing would complete a batch.
func (r *reader) await(decision, end quantity.Bytes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch = int(min(max(decision-recordSize, minBatch), end-recordSize, maxBatch))
	if r.batch < minBatch {
		r.batch = 0
	}
	// The reader itself raises the mark from 0, because it knows that bytes flow. Other
	// changes wait until they are worth a system call.
	if r.batch < r.mark || r.mark > 0 && r.batch >= 2*r.mark {
		r.setMark(r.batch)
	}
}

// setMark waits for batches of mark bytes, or for any byte if mark is 0. A lower mark wakes a
// reader that has enough bytes now.
func (r *reader) setMark(mark int) {
	switch {
	case mark == 0:
		_ = r.wires.now.Load().tcp.SetReadDeadline(time.Time{})
	case r.mark == 0:
		periods := (time.Since(epoch) + patience/2) / patience
		r.due = epoch.Add(periods * patience)
		r.extend()
	}
	r.mark = mark
	// This fails only on a closed connection, which the reader reports.
	_ = r.wires.now.Load().set(unix.SOL_SOCKET, unix.SO_RCVLOWAT, max(mark, 1))
}

// extend moves the end of a wait for a batch to the end of the next period. The deadline
// stays there whatever arrives, so there is one timer for each period and not for each read.
func (r *reader) extend() {
	r.due = r.due.Add(patience)
	_ = r.wires.now.Load().tcp.SetReadDeadline(r.due)
}

// Read returns buffered bytes, or waits for new ones.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.unread) == 0 {
		n, err := r.fill()
		if err != nil {
			return 0, err
		}
		r.unread = r.block[:n]
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	if len(r.unread) == 0 {
		r.release()
	}
	return n, nil
}

// release gives an empty block back.
func (r *reader) release() {
	block.Put(r.block)
	r.block, r.unread = nil, nil
}

// fill waits for bytes and reads them all. First it lets the readers of the last bytes run:
// if bytes arrive faster than they are used, as many would pile up in net/http as package
// transport allows.
func (r *reader) fill() (int, error) {
	runtime.Gosched()
	for {
		w := r.wires.now.Load()
		n, err := r.receive(w, r.drained && r.isBatching())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = r.receiveOverdue(w)
		}
		if err != unix.EAGAIN && !r.wires.stays(w) {
			if n > 0 {
				r.release() // Another wire receives the same bytes from the beginning.
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
		r.drained = n < block.Size
		if r.total <= youngest {
			if r.total += quantity.Bytes(n); r.total > youngest {
				r.wires.memory.remove(r.wires)
			}
		}
		r.mu.Lock()
		if r.mark == 0 && r.batch > 0 {
			r.setMark(r.batch)
		}
		r.mu.Unlock()
		return n, nil
	}
}

func (r *reader) isBatching() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mark > 0
}

// receive waits until the socket is readable, and reads. It omits the first read if the socket
// is known to hold no batch. A wake-up since the last read is then missed, but the next
// segment causes another one, or the deadline ends the wait.
func (r *reader) receive(w *wire, drained bool) (n int, err error) {
	waitErr := w.raw.Read(func(fd uintptr) bool {
		if drained {
			drained = false
			return false
		}
		n, err = r.read(fd)
		return err != unix.EAGAIN
	})
	if waitErr != nil {
		return 0, waitErr
	}
	return n, err
}

// receiveOverdue reads what arrived before the deadline. SO_RCVLOWAT does not limit a read. If
// nothing arrived, the flow has stopped, and the next wait has no deadline.
func (r *reader) receiveOverdue(w *wire) (n int, err error) {
	if controlErr := w.raw.Control(func(fd uintptr) { n, err = r.read(fd) }); controlErr != nil {
		return 0, controlErr
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mark == 0: // Switched off while the deadline passed.
	case err == unix.EAGAIN:
		r.setMark(0)
	default:
		r.extend()
	}
	return n, err
}

// read reads available bytes into a block without waiting. RawSyscall does not tell Go's
// scheduler of a system call that might block: the runtime would wake its monitor thread.
func (r *reader) read(fd uintptr) (n int, err error) {
	r.block = block.Get()
	defer func() {
		if n == 0 {
			r.release()
		}
	}()
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(r.block)), block.Size)
		switch errno {
		case 0:
			if r.fewAcks {
				// This holds once: Linux soon acknowledges at once again.
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0)
			}
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, unix.EAGAIN
		default:
			tcp := r.wires.now.Load().tcp
			return 0, &net.OpError{Op: "read", Net: "tcp", Source: tcp.LocalAddr(), Addr: tcp.RemoteAddr(), Err: os.NewSyscallError("read", errno)}
		}
	}
}
