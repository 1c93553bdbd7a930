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

// over is what the link may carry on average in a time ahead: in each stretch of it
// what it carried in as long a time past, its first seconds as the last ones.
func (h *history) over(ahead time.Duration) quantity.Rate {
	if ahead <= 0 {
		return h.means[0]
	}
	var sum quantity.Rate
	from, mean := time.Duration(0), shortestMean
	for k, rate := range h.means {
		to := min(2*mean, ahead)
		if k == len(h.means)-1 {
			to = ahead
		}
		sum += rate * quantity.Rate((to - from).Seconds())
		from, mean = to, 2*mean
	}
	return sum / quantity.Rate(ahead.Seconds())
}
