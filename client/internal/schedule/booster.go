package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// Booster is Samsung's Download Booster as observed from outside (thesis 2.3.1). Large
// files use all links, in segments of one size at any rate. Other files use Wi-Fi.
type Booster struct{}

const (
	// boosterFile is the file size above which all links are used.
	boosterFile quantity.Bytes = 30_000_000
	// boosterSegment is not published. A link requests a segment when the one before is
	// complete, so it waits one round trip for each. With 1 MB the links of the thesis
	// carry 80 to 90 % of their capacity, as observed there.
	boosterSegment quantity.Bytes = 1_000_000
)

// Next returns the size of a segment.
func (Booster) Next(int, Known) quantity.Bytes { return boosterSegment }

func (b Booster) Plan() Plan { return b }

// Every returns a long interval, because no decision depends on time.
func (Booster) Every() time.Duration { return time.Second }

// Use uses only Wi-Fi until the file is known to be large.
func (Booster) Use(s *Scene, use []bool) {
	if s.Payload > boosterFile {
		useAll(use)
		return
	}
	useKind(energy.Wifi, s, use)
}

// Ahead returns 0: a link requests nothing before its segment is complete.
func (Booster) Ahead(quantity.Bytes) quantity.Bytes { return 0 }
