package transfer

import (
	"math"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
)

// Owed is a request in flight, as a connection sees it that has nothing left to do. Such a
// connection takes a part of it over (Victims), or duplicates it (Latest).
type Owed struct {
	// Work is that of the connection or link that has the request. Its Left ends with the
	// request's last byte.
	Work schedule.Work
	// Left is what the request itself has still to bring.
	Left quantity.Bytes
	// Age is the time since the request was sent.
	Age time.Duration
	// Comes is false if no byte is expected any more.
	Comes bool
	// IsFirst says that nothing has come yet, so that slow start is still ahead.
	IsFirst bool
	// Least is the least time that the rest takes. Trip is the time that the bytes take
	// besides their transmission.
	Least, Trip time.Duration
}

// End returns the time until all of the request has come, in seconds. It is infinite if no
// byte is expected.
func (o Owed) End() float64 {
	end := o.Least.Seconds()
	switch {
	case !o.Comes:
		return math.Inf(1)
	case o.IsFirst:
		end = max(end, o.Work.First(o.Left)-o.Age.Seconds())
		if o.Work.Rate == 0 {
			return end
		}
	}
	return max(end, o.Trip.Seconds()+o.Work.End())
}

// OnItsWay returns how many bytes of a connection are not taken over: the server may have sent
// them already, or is about to.
func OnItsWay(rate quantity.Rate, rtt time.Duration) quantity.Bytes {
	return quantity.Bytes((schedule.FewTrips * rate).Over(rtt))
}

// Victims are the requests of which a part may be taken over: for each link or connection
// the one with the most bytes. R identifies a request. The zero value has room for none.
// It reuses its memory, because decisions are many.
type Victims[R any] struct {
	largest  []quantity.Bytes
	requests []R
}

// Reset removes all requests, and makes room for those of n links or connections.
func (v *Victims[R]) Reset(n int) {
	Cleared(&v.largest, n)
	Cleared(&v.requests, n)
}

// Offer adds a request of link or connection y, of which so many bytes may be taken over.
func (v *Victims[R]) Offer(y int, request R, bytes quantity.Bytes) {
	if bytes > v.largest[y] {
		v.largest[y], v.requests[y] = bytes, request
	}
}

// Choose returns the request from which x should take bytes over, whose it is, and how many
// bytes. These are 0 if it should take none (see schedule.Steal).
func (v *Victims[R]) Choose(x int, works []schedule.Work) (request R, y int, bytes quantity.Bytes) {
	if y, bytes = schedule.Steal(x, works, v.largest); bytes > 0 {
		request = v.requests[y]
	}
	return request, y, bytes
}

// Cleared makes memory a slice of n zeros, and returns it.
func Cleared[T any](memory *[]T, n int) []T {
	*memory = slices.Grow((*memory)[:0], n)[:n]
	clear(*memory)
	return *memory
}
