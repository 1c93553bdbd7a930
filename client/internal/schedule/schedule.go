// Package schedule decides how many bytes a link asks for next.
//
// The schedulers are the algorithms of the thesis on multi-link HTTP (thesis 4.3),
// of other publications, and our own. They are pure: they know no clock, socket or
// file, so that they differ only in their decisions and can be tested by calling them.
package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Link is what is known of one link when a decision is taken.
type Link struct {
	// Requests is the number of requests issued on the link so far.
	Requests int
	// Throughput is r_x, what the link delivers now.
	Throughput quantity.Rate
	// Pace is what one of its connections delivers while it has work to do.
	Pace quantity.Rate
	// Bandwidth is B_x, what the link can deliver.
	Bandwidth quantity.Rate
	// Arrived is what that connection has brought so far.
	Arrived quantity.Bytes
	// RTT is the round trip time of the link without queues.
	RTT time.Duration
	// Handshake is how long the last one of TCP took, 0 if that is not known.
	Handshake time.Duration
	// Variation is the coefficient of variation of its throughput so far.
	Variation float64
	// Spared says that the plan does not use it (see Planner).
	Spared bool
}

// Known is all that a scheduler may base a decision on.
type Known struct {
	// Payload is the size of the whole payload.
	Payload quantity.Bytes
	// InOrder says that somebody reads the payload in order while it comes.
	InOrder bool
	// Links holds every link of the download, in the order given by the user.
	Links []Link
}

// A Scheduler sizes the next range request of a link.
type Scheduler interface {
	// Next returns the bytes that link x of known.Links should request next;
	// 0 means that the link requests nothing more. The caller clips the size
	// to the bytes that are left.
	Next(x int, known Known) quantity.Bytes
}

// MinimumRequest is the least that Alg1, Alg2 and Alg3 request at a time, in
// bytes: one HTTP/2 DATA frame of default size. Without it a link that almost
// stands still beside a fast one would ask byte by byte.
const MinimumRequest = 16 << 10

// SegmentSize is what a full TCP segment over Ethernet brings, in bytes: 1500 without the
// headers of IPv4 and of TCP with its time stamps (RFC 791, 9293, 7323).
const SegmentSize = 1448

// initialShare is link x's part of the first requests: 1/n of total each
// (thesis 4.4.3).
func initialShare(x int, total quantity.Bytes, n int) quantity.Bytes {
	return total*quantity.Bytes(x+1)/quantity.Bytes(n) - total*quantity.Bytes(x)/quantity.Bytes(n)
}

// requestSize rounds a computed size to whole bytes, not below MinimumRequest.
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
