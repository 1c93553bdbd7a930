package schedule

import "github.com/linklab/linklab/client/internal/quantity"

// Single downloads the payload as one range on one link (thesis 4.3.1).
type Single struct{}

// Next returns the whole payload. Where it comes in order through a window,
// that is what the window has room for, and the rest follows.
func (Single) Next(_ int, known Known) quantity.Bytes { return known.Payload }
