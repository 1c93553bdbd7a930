package throughput

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Floor is a lower limit of a rate. It is measured over whole spans. A span must be long: a link of
// 1 kbit/s needs two minutes for a TLS record of 16 KiB, which can be read only at its end.
type Floor struct {
	// Rate 0 means no limit. Span 0 means that it is never checked.
	Rate quantity.Rate
	Span time.Duration

	from  time.Duration
	total quantity.Bytes
}

// Restart begins a new span.
func (f *Floor) Restart(now time.Duration, total quantity.Bytes) { f.from, f.total = now, total }

// IsUnder reports at the end of a span whether too few bytes arrived in it.
func (f *Floor) IsUnder(now time.Duration, total quantity.Bytes) bool {
	if f.Rate == 0 || f.Span == 0 || now-f.from < f.Span {
		return false
	}
	under := float64(total-f.total) < f.Rate.Over(now-f.from)
	f.Restart(now, total)
	return under
}
