package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// history is what a link carried while it was at work: means over the last
// shortestMean, over twice as long, and so on; over all, where that is less.
type history struct {
	worked time.Duration
	means  [12]quantity.Rate
}

// shortestMean is the least time over which a rate is averaged: links waver, and
// to wake a radio costs as much as to use it for seconds.
const shortestMean = 2 * time.Second

// add says what the link carried for a time.
func (h *history) add(rate quantity.Rate, time time.Duration) {
	h.worked += time
	over := shortestMean
	for k := range h.means {
		// Where less is known than the mean is over, all counts alike.
		weight := max(1-math.Exp(-time.Seconds()/over.Seconds()), time.Seconds()/h.worked.Seconds())
		h.means[k] += quantity.Rate(weight * float64(rate-h.means[k]))
		over *= 2
	}
}

// over is the mean over the last so much time, or a little less.
func (h *history) over(time time.Duration) quantity.Rate {
	k := 0
	for over := 2 * shortestMean; over <= time && k < len(h.means)-1; over *= 2 {
		k++
	}
	return h.means[k]
}
