package workload

import (
	"math"
	"slices"
	"time"
)

// percentile returns the smallest of the times that is at least as long as p percent of them. It
// returns 0 without times.
func percentile(times []time.Duration, p float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	ordered := slices.Sorted(slices.Values(times))
	rank := int(math.Ceil(p / 100 * float64(len(ordered))))
	return ordered[max(rank, 1)-1]
}
