package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// history holds mean rates of a link over its busy time: over the last shortestMean,
// over twice that time, and so on. A mean over more time than the link was busy is
// the mean over all of its busy time.
type history struct {
	worked time.Duration
	means  [12]quantity.Rate
}

// shortestMean is the shortest window of a mean. Rates vary, and waking a radio costs
// as much energy as some seconds of its use.
const shortestMean = 2 * time.Second

// add records the rate of the link during a time.
func (h *history) add(rate quantity.Rate, time time.Duration) {
	h.worked += time
	over := shortestMean
	for k := range h.means {
		// While the link was busy for less than the window, all of that time counts equally.
		weight := max(1-math.Exp(-time.Seconds()/over.Seconds()), time.Seconds()/h.worked.Seconds())
		h.means[k] += quantity.Rate(weight * float64(rate-h.means[k]))
		over *= 2
	}
}

// over returns the mean rate to expect for a time ahead. Each stretch of that time is
// expected to repeat a past stretch of the same length: the next seconds the last
// seconds, the next minutes the last minutes.
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
