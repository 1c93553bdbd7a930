package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Alg1 divides a static upper limit among the links in proportion to their throughput
// (thesis 4.3.3).
type Alg1 struct {
	// UpperLimit is U, the sum of one request of every link.
	UpperLimit quantity.Bytes
	// FirstRequests is the sum of the first requests of all links.
	FirstRequests quantity.Bytes
}

// Next returns s_x = U · r_x/Σr (thesis figures 4.5 and 4.6).
func (a Alg1) Next(x int, known Known) quantity.Bytes {
	l := known.Links[x]
	if l.Requests == 0 {
		return initialShare(x, a.FirstRequests, len(known.Links))
	}
	total := totalThroughput(known.Links)
	if total == 0 {
		return MinimumRequest
	}
	return requestSize(float64(a.UpperLimit) * float64(l.Throughput) / float64(total))
}
