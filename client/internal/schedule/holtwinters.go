package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// holtWinters predicts a rate from samples. It smooths a level and a trend
// (Holt 1957, Winters 1960, without seasons).
type holtWinters struct {
	known        bool
	level, trend float64
}

// The weights of level and trend are not published (eMPTCP 3.2). These values follow a
// change within a few samples.
const (
	levelWeight = 0.8
	trendWeight = 0.2
)

func (h *holtWinters) add(sample quantity.Rate) {
	x := float64(sample)
	if !h.known {
		h.known, h.level = true, x
		return
	}
	before := h.level
	h.level = levelWeight*x + (1-levelWeight)*(h.level+h.trend)
	h.trend = trendWeight*(h.level-before) + (1-trendWeight)*h.trend
}

// next returns the predicted rate, at least 0.
func (h *holtWinters) next() quantity.Rate { return quantity.Rate(max(0, h.level+h.trend)) }
