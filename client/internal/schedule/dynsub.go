package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// DynSub divides segments of constant playback time in proportion to the links'
// throughput (Evensen; thesis 2.2.2).
type DynSub struct {
	// Player plays the payload. Its Rate turns playback time into bytes.
	Player Player
}

// dynSubSegment is the playback time of a segment. Services use 2 to 10 s. The
// shortest time needs the smallest buffer.
const dynSubSegment = 2 * time.Second

// Next returns 0: links get parts of segments instead.
func (DynSub) Next(int, Known) quantity.Bytes { return 0 }

func (d DynSub) Plan() Plan { return d }

// Every returns a long interval, because no decision depends on time.
func (DynSub) Every() time.Duration { return time.Second }

// Use uses all links.
func (DynSub) Use(_ *Scene, use []bool) { useAll(use) }

// Segment returns the bytes that play for dynSubSegment.
func (d DynSub) Segment(int, *Scene) quantity.Bytes {
	return quantity.Bytes(d.Player.Rate.Over(dynSubSegment))
}

// Ahead returns pipe, so that the link never waits for the next answer.
func (DynSub) Ahead(pipe quantity.Bytes) quantity.Bytes { return pipe }

// Share divides a segment in proportion to the throughput. If the throughput of one
// link is unknown, all links get equal parts.
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

// Recover returns false: every link keeps its subsegments.
func (DynSub) Recover(int, int, quantity.Bytes, *Scene) bool { return false }
