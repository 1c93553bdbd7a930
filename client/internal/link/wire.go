package link

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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

// info asks the kernel (TCP_INFO).
func (w *wire) info() (info *unix.TCPInfo, err error) {
	controlErr := w.raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	return info, err
}

// isBlackHole reports whether small segments get through and full ones do not: for so many
// milliseconds only later bytes arrived, in small segments, or only later bytes were
// acknowledged, in spite of retransmissions.
func (w *wire) isBlackHole(silence uint32) bool {
	info, err := w.info()
	if err != nil {
		return false
	}
	receives := info.Advmss > smallSegment && info.Rcv_mss <= smallSegment &&
		info.Rcv_ooopack > 0 && info.Unacked == 0 && info.Last_data_sent >= silence
	sends := info.Snd_mss > smallSegment && info.Sacked > 0 && info.Last_ack_recv >= silence && info.Retransmits > 0
	return receives || sends
}

// wires holds the wire of a connection, which another one may replace at first.
type wires struct {
	now atomic.Pointer[wire]
	// opening is nil once the wire cannot change any more.
	opening atomic.Pointer[opening]
	// address is the other end's address. memory learns how it works.
	address netip.Addr
	memory  *Memory
	// room counts the wires.
	room *Room
}

// open starts to watch a connection that took so long to connect.
func (ws *wires) open(d Dialer, by way, rest []way, took time.Duration) {
	o := &opening{wires: ws, dialer: d, first: by, patience: max(leastSilence, silentTrips*took)}
	if o.rest = slices.Clone(rest); !by.small {
		small := by
		small.small = true
		o.rest = append(o.rest, small)
	}
	if len(o.rest) > 0 {
		o.dialing, o.cancel = context.WithCancel(context.Background())
		ws.opening.Store(o)
	}
}

// apply sets an option of the connection's wire, and of the wires that may replace it.
func (ws *wires) apply(set func(*wire) error) error {
	if o := ws.opening.Load(); o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !o.over {
			o.set = append(o.set, set)
			for _, other := range o.others {
				_ = set(other) // A wire that fails does not answer.
			}
		}
	}
	return set(ws.now.Load())
}

// stays ends the opening, and reports whether the wire is that of the connection.
func (ws *wires) stays(w *wire) bool {
	ws.settle()
	return ws.now.Load() == w
}

// settle ends the opening: no other wire replaces the present one.
func (ws *wires) settle() {
	if o := ws.opening.Load(); o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.end()
	}
}
