package transfer

import (
	"errors"
	"time"

	"github.com/linklab/linklab/client/internal/schedule"
)

const (
	// CheckInterval is the time between two looks at all links.
	CheckInterval = 50 * time.Millisecond

	// Nothing may arrive on a connection for LeastSilence, nor for schedule.FewTrips round trips, before it counts
	// as silent.
	LeastSilence = 300 * time.Millisecond

	// A link that failed is not used for LeastBackoff, then for twice as long each time.
	LeastBackoff = schedule.OrderTime
	MostBackoff  = 8 * time.Second
)

var (
	// ErrComplete ends a transfer in which every byte has arrived.
	ErrComplete = errors.New("complete")
	// ErrGone is why a connection that was given up takes no more requests.
	ErrGone = errors.New("the connection is not used any more")
)

// Doubled returns least · 2^times, at most most.
func Doubled(least time.Duration, times int, most time.Duration) time.Duration {
	return min(least<<min(max(times, 0), 20), most)
}

// Backoff returns for how long a link is not used after so many failures in a row.
func Backoff(failures int) time.Duration {
	return Doubled(LeastBackoff, failures-1, MostBackoff)
}

// Silence returns how long nothing may arrive where so much is usual at least.
func Silence(least, rtt time.Duration) time.Duration { return max(least, schedule.FewTrips*rtt) }

// IsQuiet reports whether nothing has arrived for longer than usual, so that others may do
// better. The connection does not count as silent for that alone.
func IsQuiet(since, rtt time.Duration) bool { return since > max(LeastSilence/2, 2*rtt) }
