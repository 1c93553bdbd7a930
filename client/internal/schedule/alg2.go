package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Alg2 is Alg1 with a dynamic upper limit. The limit grows with the used part of the
// links' bandwidth (thesis 4.3.4).
type Alg2 struct {
	// FirstRequests is the sum of the first requests of all links.
	FirstRequests quantity.Bytes
}

// Next returns s_x = D · r_x/Σr.
func (a Alg2) Next(x int, known Known) quantity.Bytes {
	if known.Links[x].Requests == 0 {
		return initialShare(x, a.FirstRequests, len(known.Links))
	}
	return requestSize(dynamicShare(x, known))
}

// dynamicShare returns s_x = D · r_x/Σr in bytes, with the dynamic upper limit
// D = payload/n · Σr/ΣB (thesis figures 4.8 and 4.9). It returns 0 while no
// throughput or bandwidth is known.
func dynamicShare(x int, known Known) float64 {
	throughput, bandwidth := totalThroughput(known.Links), totalBandwidth(known.Links)
	if throughput == 0 || bandwidth == 0 {
		return 0
	}
	upperLimit := float64(known.Payload) / float64(len(known.Links)) * float64(throughput) / float64(bandwidth)
	return upperLimit * float64(known.Links[x].Throughput) / float64(throughput)
}
