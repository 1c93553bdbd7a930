// Package schedule decides how many bytes a link requests next.
//
// Its algorithms come from the thesis on multi-link HTTP (thesis 4.3), from other
// publications, and from this project. They use no clock, socket or file. So they
// differ only in their decisions, and a test can call them directly.
package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Link describes one link at the time of a decision.
type Link struct {
	// Requests is the number of requests issued on the link so far.
	Requests int
	// Throughput is r_x, the present throughput of the link.
	Throughput quantity.Rate
	// Pace is the rate of one connection of the link while it has work.
	Pace quantity.Rate
	// Bandwidth is B_x, the rate that the link can reach.
	Bandwidth quantity.Rate
	// Arrived counts the bytes that arrived on that connection.
	Arrived quantity.Bytes
	// RTT is the round trip time of the link without queues.
	RTT time.Duration
	// Handshake is the duration of the last TCP handshake, 0 if unknown.
	Handshake time.Duration
	// Variation is the coefficient of variation of Throughput so far.
	Variation float64
	// Spared is true if the plan does not use the link (see Planner).
	Spared bool
}

// Known holds everything that a scheduler may base a decision on.
type Known struct {
	// Payload is the size of the whole payload.
	Payload quantity.Bytes
	// InOrder is true if a program reads the payload in order during the download.
	InOrder bool
	// Links holds every link of the download, in the order given by the user.
	Links []Link
}

// A Scheduler sizes the next range request of a link.
type Scheduler interface {
	// Next returns how many bytes link x of known.Links should request next. 0 means
	// no further request. The caller limits the size to the bytes that are left.
	Next(x int, known Known) quantity.Bytes
}

// MinimumRequest is the smallest request of Alg1, Alg2 and Alg3, in bytes: one
// HTTP/2 DATA frame of default size. Without this minimum, an almost stalled link
// beside a fast one would request single bytes.
const MinimumRequest = 16 << 10

// SegmentSize is the payload of a full TCP segment over Ethernet, in bytes: 1500
// minus the headers of IPv4 and of TCP with time stamps (RFC 791, 9293, 7323).
const SegmentSize = 1448

// initialShare returns the first request of link x: 1/n of total (thesis 4.4.3).
func initialShare(x int, total quantity.Bytes, n int) quantity.Bytes {
	return total*quantity.Bytes(x+1)/quantity.Bytes(n) - total*quantity.Bytes(x)/quantity.Bytes(n)
}

// requestSize rounds a computed size to whole bytes, at least MinimumRequest.
func requestSize(bytes float64) quantity.Bytes {
	return max(quantity.Bytes(math.Round(bytes)), MinimumRequest)
}

func totalThroughput(links []Link) (sum quantity.Rate) {
	for _, l := range links {
		sum += l.Throughput
	}
	return sum
}

func totalBandwidth(links []Link) (sum quantity.Rate) {
	for _, l := range links {
		sum += l.Bandwidth
	}
	return sum
}
