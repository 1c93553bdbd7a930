package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// Booster is Samsung's Download Booster as it was seen from outside (thesis
// 2.3.1): large files over all links, in segments of one size, whatever the
// links do; anything else over Wi-Fi.
type Booster struct{}

const (
	// boosterFile is the size above which all links are used.
	boosterFile quantity.Bytes = 30_000_000
	// boosterSegment is not published. Each is requested when the one before is
	// complete, so that a link waits a round trip for every one: with 1 MB the
	// links of the thesis carry 80 to 90 % of what they could, as was seen.
	boosterSegment quantity.Bytes = 1_000_000
)

// Next is a segment.
func (Booster) Next(int, Known) quantity.Bytes { return boosterSegment }

// Plan makes it a Planner.
func (b Booster) Plan() Plan { return b }

// Every is rare: nothing depends on time.
func (Booster) Every() time.Duration { return time.Second }

// Use is Wi-Fi alone until the size is known to be large.
func (Booster) Use(s *Scene, use []bool) {
	if s.Payload > boosterFile {
		useAll(use)
		return
	}
	useKind(energy.Wifi, s, use)
}

// Ahead is 0: nothing is requested before all of a segment has arrived.
func (Booster) Ahead(quantity.Bytes) quantity.Bytes { return 0 }
