package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Alg3 is Alg2 with the link's bandwidth-delay product as the lower limit (thesis 4.3.5).
type Alg3 struct {
	// FirstRequests is the sum of the first requests of all links.
	FirstRequests quantity.Bytes
	// Padding is f, above 0 and at most 1: the part of the request of Alg2 beyond the
	// bandwidth-delay product that Alg3 requests. Links at full bandwidth bring Alg2
	// close to the naive split, and f below 1 keeps their requests small. With 1 it
	// is the plain algorithm.
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
