package throughput

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Floor is the least rate at which something must go on. It is measured over whole
// spans: a record of TLS of 16 KiB, of which nothing can be read before its end, takes a
// link of 1 kbit/s two minutes.
type Floor struct {
	// Rate is 0 for none, and Span for never.
	Rate quantity.Rate
	Span time.Duration

	from  time.Duration
	total quantity.Bytes
}

// Restart begins a span, in which nothing counts that came before.
func (f *Floor) Restart(now time.Duration, total quantity.Bytes) { f.from, f.total = now, total }

// IsUnder reports, once a span is over, whether less came in it than must.
func (f *Floor) IsUnder(now time.Duration, total quantity.Bytes) bool {
	if f.Rate == 0 || f.Span == 0 || now-f.from < f.Span {
		return false
	}
	under := float64(total-f.total) < f.Rate.Over(now-f.from)
	f.Restart(now, total)
	return under
}
