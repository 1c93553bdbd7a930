package transfer

import (
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
)

// MostDuplicate returns how many bytes a connection of that rate may request that another
// one has requested.
func MostDuplicate(rate quantity.Rate) quantity.Bytes {
	return max(schedule.FirstOrder, quantity.Bytes(rate.Over(schedule.OrderTime)))
}

// Latest is the request with the latest end of those that a connection may duplicate. The
// zero value is none.
type Latest[R any] struct {
	Request R
	// left is what the request has still to bring, and end when it has, in seconds. If end
	// is 0 there is no request.
	left quantity.Bytes
	end  float64
}

// Offer adds a request that has so much to bring, which takes until end.
func (l *Latest[R]) Offer(request R, left quantity.Bytes, end float64) {
	if end > l.end {
		*l = Latest[R]{request, left, end}
	}
}

// IsWorth reports whether there is a request that a connection with this work brings sooner.
func (l *Latest[R]) IsWorth(free schedule.Work) bool {
	return l.end > 0 && free.Sooner(l.left, l.end)
}
