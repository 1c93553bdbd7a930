package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Shown is what a link has shown of its rate before it has carried any of the
// file: connections that are begun at the same time exchange what TLS needs one
// behind the other, as a train of packets (packet pairs: Keshav 1991). It is a
// lower bound, of either direction: a link of which nothing else is known gets
// no more than it surely carries.
type Shown struct {
	from, last time.Duration
	bytes      quantity.Bytes
}

// longestGap is how far apart connections are made at most that were begun
// together: at 100 kbit/s a certificate takes half a second.
const longestGap = 500 * time.Millisecond

// asymmetry is how much faster downlinks usually are than uplinks at most. What a
// client sends to begin TLS is as long as the answer, so that the train mostly
// shows the uplink. Half of it does as well, a quarter and twice as much worse
// (emulator/handbook/experiments/constants.md).
const asymmetry = 4

// Add takes note of a connection that was made at now, and what it received.
func (s *Shown) Add(now time.Duration, bytes quantity.Bytes) {
	switch {
	case s.from == 0:
		s.from = now
	case now-s.last > longestGap:
		return // It was not begun with the others.
	default:
		s.bytes += bytes
	}
	s.last = now
}

// Rate is what the link carries at least, 0 if that is not known.
func (s *Shown) Rate() quantity.Rate {
	if s.last <= s.from {
		return 0
	}
	return s.bytes.Per(s.last - s.from)
}

// Most is what the link is taken to carry at most, 0 if nothing is known.
func (s *Shown) Most() quantity.Rate { return asymmetry * s.Rate() }
