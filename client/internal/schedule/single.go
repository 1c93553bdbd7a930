package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Single downloads the payload as one range on one link (thesis 4.3.1).
type Single struct{}

// Next returns the whole payload. If the payload passes in order through a window, the
// engine requests as much as the window holds, and the rest later.
func (Single) Next(_ int, known Known) quantity.Bytes { return known.Payload }
