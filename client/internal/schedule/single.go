package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Single downloads the payload as one range on one link (thesis 4.3.1).
type Single struct{}

// Next returns the whole payload once.
func (Single) Next(x int, known Known) quantity.Bytes {
	if known.Links[x].Requests > 0 {
		return 0
	}
	return known.Payload
}
