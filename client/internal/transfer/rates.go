package transfer

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
)

// Averaged returns the time over which throughput is averaged for decisions about the
// number of connections: what is behind a lost packet comes a round trip late.
func Averaged(rtt time.Duration) time.Duration { return max(schedule.PaceWindow, 2*rtt) }

// GuessRates gives usable work without a measured rate an estimate: the bandwidth if it is
// known, else the rate that the link has shown, else half of the others' mean, because
// an unknown link is not trusted much. For the work x, of returns whether it is fresh
// (only fresh work gets an estimate) and both rates, 0 if unknown.
func GuessRates(works []schedule.Work, of func(x int) (isFresh bool, bandwidth, shown quantity.Rate)) {
	var sum quantity.Rate
	var known int
	for _, w := range works {
		if w.Rate > 0 {
			sum += w.Rate
			known++
		}
	}
	for x := range works {
		w := &works[x]
		if !w.Usable || w.Rate > 0 {
			continue
		}
		isFresh, bandwidth, shown := of(x)
		switch {
		case !isFresh:
		case bandwidth > 0:
			w.Rate = bandwidth
		case shown > 0:
			w.Rate = shown
		case known > 0:
			w.Rate = sum / quantity.Rate(known) / 2
		}
	}
}

const (
	// What is ordered ahead fills the link's queue. The queue makes the delay longer, for
	// which more would be ordered ahead, until packets are lost. So a delay counts for at
	// most a multiple of what it is without a queue.

	// MostFirstByte is this multiple for the time from a request to its first byte, which
	// has the server's time in it. Downloads order ahead by it.
	MostFirstByte = 2
	// MostRoundTrip is this multiple for the round trip time of TCP. Uploads order ahead
	// by it.
	MostRoundTrip = 4
)

// Ahead returns how many bytes a connection should have to transfer so that it is never
// idle in its delay and the pause that follows.
func Ahead(rate quantity.Rate, delay, pause time.Duration) quantity.Bytes {
	return quantity.Bytes((schedule.Ahead * rate).Over(delay) + rate.Over(pause))
}
