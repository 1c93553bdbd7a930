package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transport"
)

// linkState is a link in a download.
type linkState struct {
	Link
	// conn and socket are nil until the link is connected.
	conn   *transport.Conn
	socket link.Socket
	rtt    link.RoundTrip
	meter  *throughput.Meter

	// newest is the link's newest request until the next one is issued.
	newest   *request
	requests int
	inFlight int
	// expected is what the requests in flight have still to deliver.
	expected int64
	wasted   int64
	// last is when the last byte arrived.
	last time.Duration
}

// request is a range request.
type request struct {
	ranges.Range
	id       int
	received int64
}

func (r *request) complete() bool { return r.received == r.Length }

// await tells the socket how many bytes must arrive until the link's next
// decision, which takes the part overlap of its newest request, and until all
// its requests have ended.
func (l *linkState) await(overlap float64) {
	decision := l.expected
	if l.newest != nil {
		decision -= int64((1 - overlap) * float64(l.newest.Length))
	}
	l.socket.Await(decision, l.expected)
}

// measure updates the round trip time. It keeps the last known one if the
// socket can not tell, as after a reset.
func (l *linkState) measure() {
	if l.socket == nil {
		return
	}
	if rtt, err := l.socket.RoundTrip(); err == nil {
		l.rtt = rtt
	}
}

// known is what a scheduler may know of the link at now.
func (l *linkState) known(now time.Duration) schedule.Link {
	bandwidth := l.Bandwidth
	if bandwidth == 0 {
		bandwidth = l.meter.Peak()
	}
	return schedule.Link{
		Requests:   l.requests,
		Throughput: l.meter.Rate(now),
		Bandwidth:  bandwidth,
		RTT:        l.rtt.Min,
	}
}

func (l *linkState) summary() rundir.LinkSummary {
	return rundir.LinkSummary{
		Device:   l.Device,
		Bytes:    l.meter.Total(),
		Finish:   l.last.Nanoseconds(),
		Requests: l.requests,
		MinRTT:   l.rtt.Min.Nanoseconds(),
		LastRTT:  l.rtt.Last.Nanoseconds(),
		Peak:     8 * l.meter.Peak(),
		Wasted:   l.wasted,
	}
}
