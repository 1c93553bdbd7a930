package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Naive divides the payload into n equal parts, one for each link (thesis 4.3.2).
type Naive struct{}

// Next returns payload/n once for each link.
func (Naive) Next(x int, known Known) quantity.Bytes {
	if known.Links[x].Requests > 0 {
		return 0
	}
	return initialShare(x, known.Payload, len(known.Links))
}
