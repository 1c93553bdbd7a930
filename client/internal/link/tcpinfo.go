package link

import (
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/quantity"
)

// A Socket is a network connection of a link.
type Socket interface {
	net.Conn
	// Await says how many bytes must still reach the requests in flight
	// before the next decision, and before all of them have ended.
	Await(decision, end quantity.Bytes)
	// Owes says whether the other end still has to send something. It is asked
	// now and then whether it is there, by TCP's keep-alive, only while it does:
	// each such question wakes the radio of a link that rests.
	Owes(bool)
	// Ask has TCP ask the other end whether it is there, a second after that was heard
	// of last, and then every second while it owes something.
	Ask() error
	// Answered returns how long ago the other end's kernel acknowledged something last,
	// such a question too, and whether it has all that was sent. Programs there have no
	// say in it.
	Answered() (ago time.Duration, all bool, err error)
	// RoundTrip returns the round trip time as measured until now, and what
	// has arrived.
	RoundTrip() (RoundTrip, error)
	// Trial tells its Pacer whether it is of use; nil if it has none.
	Trial() *Trial
}

// Sender is a socket that can be told how to send, as a Conn can.
type Sender interface {
	LimitUnsent(bytes int) error
	FillSegments(always bool) error
	DiscardUnsent() error
}

// RoundTrip holds the kernel's estimates of a connection's round trip time, and
// its counts of what the link has brought and taken away.
type RoundTrip struct {
	// Last is the current smoothed round trip time, queues included.
	Last time.Duration
	// Min is the least seen in the last minutes: the round trip time without
	// queues.
	Min time.Duration
	// Segments counts those with data, behind a lost one too, where a program
	// gets nothing until it is sent again; OutOfOrder those that came so.
	Segments, OutOfOrder uint32
	// Sending is the current smoothed round trip time of what was sent, queues
	// included, and Acknowledged how many bytes of that the other end's kernel has.
	// Programs there have no say in it.
	Sending      time.Duration
	Acknowledged uint64
}

// RoundTrip asks the kernel (TCP_INFO). On a receiver of data its own
// segments, and with them tcpi_rtt, are rare; tcpi_rcv_rtt is measured from
// the stream of arriving data and preferred once there is any.
func (c *Conn) RoundTrip() (RoundTrip, error) {
	info, err := c.info()
	if err != nil {
		return RoundTrip{}, err
	}
	last := info.Rcv_rtt
	if last == 0 {
		last = info.Rtt
	}
	return RoundTrip{
		Last:       time.Duration(last) * time.Microsecond,
		Min:        time.Duration(info.Min_rtt) * time.Microsecond,
		Segments:   info.Data_segs_in,
		OutOfOrder: info.Rcv_ooopack,

		Sending:      time.Duration(info.Rtt) * time.Microsecond,
		Acknowledged: info.Bytes_acked,
	}, nil
}

// Acknowledged returns how many bytes the other end's kernel has acknowledged,
// and whether these are all that were sent. Programs there have no say in it.
func (c *Conn) Acknowledged() (bytes uint64, all bool, err error) {
	info, err := c.info()
	if err != nil {
		return 0, false, err
	}
	return info.Bytes_acked, info.Unacked == 0, nil
}

// Answered asks the kernel (TCP_INFO).
func (c *Conn) Answered() (ago time.Duration, all bool, err error) {
	info, err := c.info()
	if err != nil {
		return 0, false, err
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond, info.Unacked == 0 && info.Notsent_bytes == 0, nil
}

// LimitUnsent has the kernel take no more than about so many bytes that it
// cannot send yet: what it has taken is then on its way.
func (c *Conn) LimitUnsent(bytes int) error {
	return c.apply(func(w *wire) error { return w.set(unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) })
}

// FillSegments has TCP send no segment that is not full while something is on its way
// (RFC 896), or, as usual, whatever is written at once.
func (c *Conn) FillSegments(always bool) error {
	return c.apply(func(w *wire) error { return w.tcp.SetNoDelay(!always) })
}

// DiscardUnsent has Close throw away what the other end's kernel does not have. Else the
// kernel goes on sending it.
func (c *Conn) DiscardUnsent() error {
	return c.apply(func(w *wire) error { return w.tcp.SetLinger(0) })
}

func (c *Conn) info() (info *unix.TCPInfo, err error) {
	controlErr := c.wire.Load().raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if controlErr != nil {
		return nil, controlErr
	}
	return info, err
}
