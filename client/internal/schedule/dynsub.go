package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// DynSub divides segments of constant duration into subsegments by the links'
// throughput (Evensen; thesis 2.2.2).
type DynSub struct {
	// Player is who plays the payload: Rate turns durations into bytes.
	Player Player
}

// dynSubSegment is how long a segment plays. Services take 2 to 10 s; the
// shortest asks least of the player's buffer.
const dynSubSegment = 2 * time.Second

// Next makes it a Scheduler. Links get subsegments instead.
func (DynSub) Next(int, Known) quantity.Bytes { return 0 }

// Plan makes it a Planner.
func (d DynSub) Plan() Plan { return d }

// Every is rare: nothing depends on time.
func (DynSub) Every() time.Duration { return time.Second }

// Use uses all links.
func (DynSub) Use(_ *Scene, use []bool) { useAll(use) }

// Segment is what plays for a segment's duration.
func (d DynSub) Segment(int, *Scene) quantity.Bytes {
	return quantity.Bytes(d.Player.Rate.Over(dynSubSegment))
}

// Ahead sends a link's next request a little before its present one ends.
func (DynSub) Ahead(pipe quantity.Bytes) quantity.Bytes { return pipe }

// Share is in proportion to throughput; in equal parts before anything is known
// of a link.
func (DynSub) Share(x int, segment quantity.Bytes, s *Scene, shares []quantity.Bytes) {
	var sum quantity.Rate
	used, known := 0, true
	for i, p := range s.Progress {
		if p.Usable || i == x {
			used++
			sum += s.Links[i].Throughput
			known = known && s.Links[i].Throughput > 0
		}
	}
	left := segment
	for i, p := range s.Progress {
		shares[i] = 0
		if i == x || !p.Usable {
			continue
		}
		part := 1 / float64(used)
		if known {
			part = float64(s.Links[i].Throughput / sum)
		}
		if whole := quantity.Bytes(part * float64(segment)); whole >= leastShare && left-whole >= leastShare {
			shares[i] = whole
			left -= whole
		}
	}
	shares[x] = left
}

// Recover leaves every subsegment to its link.
func (DynSub) Recover(int, int, quantity.Bytes, *Scene) bool { return false }
