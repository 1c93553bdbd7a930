package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Alg3 is Alg2 with the bandwidth-delay product of the link as the lower
// limit (thesis 4.3.5).
type Alg3 struct {
	// FirstRequests is the sum of the first requests of all links.
	FirstRequests quantity.Bytes
	// Padding is f, the part of what Alg2 would request beyond the
	// bandwidth-delay product that is requested: above 0 to 1. Below 1 it
	// keeps requests small when the links run at their bandwidth, where Alg2
	// approaches the naive split; 1 is the plain algorithm.
	Padding float64
}

// Next returns BDP + f·(s_x − BDP), with s_x as in Alg2, or BDP = B_x · RTT_x
// where s_x is below it (thesis 4.3.5, "Algorithm Link BDP diff padding").
func (a Alg3) Next(x int, known Known) quantity.Bytes {
	l := known.Links[x]
	if l.Requests == 0 {
		return initialShare(x, a.FirstRequests, len(known.Links))
	}
	share := dynamicShare(x, known)
	bdp := l.Bandwidth.Over(l.RTT)
	if share < bdp {
		return requestSize(bdp)
	}
	return requestSize(bdp + a.Padding*(share-bdp))
}
