package throughput

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// history computes mean and variance of samples (Welford 1962).
type history struct {
	at           time.Duration
	n            int
	mean, square float64
}

// due reports whether a window has passed since the last sample, or the start.
func (h *history) due(now, start, window time.Duration) bool {
	return now-max(h.at, start) >= window
}

func (h *history) add(now time.Duration, sample quantity.Rate) {
	h.at = now
	h.n++
	before := float64(sample) - h.mean
	h.mean += before / float64(h.n)
	h.square += before * (float64(sample) - h.mean)
}

// variation returns the standard deviation of the samples divided by their mean.
func (h *history) variation() float64 {
	if h.n < 2 || h.mean == 0 {
		return 0
	}
	return math.Sqrt(h.square/float64(h.n-1)) / h.mean
}
