package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Alg1Limited is Alg1 with the limiting factor that thesis 4.3.3 proposes. A link's
// share of the throughput counts as at least leastPart. It counts as at most the
// part that remains if every other link gets leastPart.
type Alg1Limited struct{ Alg1 }

// leastPart is not published. 0.1 keeps a link busy that has just started, and
// leaves at most 0.9 to another link.
const leastPart = 0.1

// Next returns U · share, with the limited share.
func (a Alg1Limited) Next(x int, known Known) quantity.Bytes {
	throughput := totalThroughput(known.Links)
	if known.Links[x].Requests == 0 || throughput == 0 || len(known.Links) < 2 {
		return a.Alg1.Next(x, known)
	}
	share := float64(known.Links[x].Throughput / throughput)
	least := min(leastPart, 1/float64(len(known.Links)))
	share = min(max(share, least), 1-least*float64(len(known.Links)-1))
	return requestSize(float64(a.UpperLimit) * share)
}

// Alg2Limited is Alg2 with the limiting factor that thesis 4.3.4 proposes. D, which
// can reach payload/n, stays below mostPart of the payload.
type Alg2Limited struct{ Alg2 }

// mostPart is not published. 0.05 leaves enough requests to correct a wrong one. The
// padding of Alg3 has the same effect with two links.
const mostPart = 0.05

// Next returns D · r_x/Σr, with the limited D.
func (a Alg2Limited) Next(x int, known Known) quantity.Bytes {
	throughput := totalThroughput(known.Links)
	if known.Links[x].Requests == 0 || throughput == 0 {
		return a.Alg2.Next(x, known)
	}
	share := float64(known.Links[x].Throughput / throughput)
	return requestSize(min(dynamicShare(x, known), mostPart*float64(known.Payload)*share))
}

// Alg3History is Alg3 with an f for each link that depends on the history of its
// throughput (thesis 4.3.5). The more the throughput varied, the fewer bytes beyond
// the bandwidth-delay product are requested.
type Alg3History struct{ Alg3 }

// Next returns the size of Alg3 with f · (1 − v). v is the coefficient of variation
// of the link's throughput, at most 1.
func (a Alg3History) Next(x int, known Known) quantity.Bytes {
	a.Padding *= max(0, 1-known.Links[x].Variation)
	return a.Alg3.Next(x, known)
}
