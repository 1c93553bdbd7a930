package link

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// A Socket is a network connection of a link.
type Socket interface {
	net.Conn
	// Await says how many bytes must still reach the requests in flight
	// before the next decision, and before all of them have ended.
	Await(decision, end int64)
	// RoundTrip returns the round trip time as measured until now.
	RoundTrip() (RoundTrip, error)
}

// RoundTrip holds the kernel's estimates of a connection's round trip time.
type RoundTrip struct {
	// Last is the current smoothed round trip time, queues included.
	Last time.Duration
	// Min is the least seen in the last minutes: the round trip time without
	// queues.
	Min time.Duration
}

// RoundTrip asks the kernel (TCP_INFO). On a receiver of data its own
// segments, and with them tcpi_rtt, are rare; tcpi_rcv_rtt is measured from
// the stream of arriving data and preferred once there is any.
func (c *Conn) RoundTrip() (RoundTrip, error) {
	var info *unix.TCPInfo
	var infoErr error
	if err := c.raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); err != nil {
		return RoundTrip{}, err
	}
	if infoErr != nil {
		return RoundTrip{}, infoErr
	}
	last := info.Rcv_rtt
	if last == 0 {
		last = info.Rtt
	}
	return RoundTrip{
		Last: time.Duration(last) * time.Microsecond,
		Min:  time.Duration(info.Min_rtt) * time.Microsecond,
	}, nil
}
