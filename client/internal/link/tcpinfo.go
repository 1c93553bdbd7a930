package link

import (
	"net"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// A Socket is a network connection of a link.
type Socket interface {
	net.Conn
	// Await tells how many bytes the requests in flight still get before the next decision,
	// and before all of them end.
	Await(decision, end quantity.Bytes)
	// Owes tells whether the other end still has something to send. Only then TCP sends
	// keep-alive probes: each probe wakes the radio of an idle link.
	Owes(bool)
	// Ask sends a keep-alive probe one second after the last byte from the other end, and
	// then one each second while the other end has something to send.
	Ask() error
	// Answered returns the time since the last acknowledgement of the other end's kernel, also
	// of a probe, and whether all bytes were acknowledged. Programs at the other end do not
	// matter.
	Answered() (ago time.Duration, all bool, err error)
	// RoundTrip returns the round trip times and counters up to now.
	RoundTrip() (RoundTrip, error)
	// Trial returns the trial of the connection, nil without a Pacer.
	Trial() *Trial
}

// Sender is a socket whose sending can be configured, such as a Conn.
type Sender interface {
	LimitUnsent(bytes int) error
	FillSegments(always bool) error
	DiscardUnsent() error
}

// RoundTrip holds the kernel's estimates of a connection's round trip time, and its counters
// of received and sent bytes.
type RoundTrip struct {
	// Last is the present smoothed round trip time, queues included.
	Last time.Duration
	// Min is the least round trip time of the last minutes: without queues.
	Min time.Duration
	// Segments counts the segments with data. OutOfOrder counts those behind a lost segment,
	// which a program gets only after the retransmission.
	Segments, OutOfOrder uint32
	// Sending is the present smoothed round trip time of sent bytes, queues included.
	// Acknowledged counts the sent bytes that the other end's kernel has, whether or not a
	// program has read them.
	Sending      time.Duration
	Acknowledged uint64
}

// RoundTrip asks the kernel (TCP_INFO). A receiver sends few segments of its own, so tcpi_rtt is
// rarely updated. tcpi_rcv_rtt is measured from arriving data and preferred if it is set.
func (c *Conn) RoundTrip() (RoundTrip, error) {
	info, err := c.wires.now.Load().info()
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

// Answered asks the kernel (TCP_INFO).
func (c *Conn) Answered() (ago time.Duration, all bool, err error) {
	info, err := c.wires.now.Load().info()
	if err != nil {
		return 0, false, err
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond, info.Unacked == 0 && info.Notsent_bytes == 0, nil
}
