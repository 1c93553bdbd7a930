package transfer

import (
	"cmp"
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
)

// Growing is what a link knows of the number of its connections.
type Growing struct {
	// Growth decides how many there are; nil where there is one.
	Growth *schedule.Growth
	// Shown is what making connections has shown of the link's rate.
	Shown schedule.Shown
	// Together is what all connections transfer.
	Together *throughput.Pace
}

// HasSeveral reports whether the link may have several connections.
func (g *Growing) HasSeveral() bool { return g.Growth != nil }

// Surplus returns which of a link's connections are too many for the count: those that are leaving
// already, then the slowest, of equals the newest. The first connection stays.
func Surplus[C any](connections []C, count int, isLeaving func(C) bool, pace func(C) *throughput.Pace, now time.Duration) []C {
	surplus := len(connections) - count
	if surplus <= 0 {
		return nil
	}
	further := slices.Clone(connections[1:])
	slices.Reverse(further)
	rank := func(c C) quantity.Rate {
		if isLeaving(c) {
			return -1
		}
		return pace(c).Rate(now)
	}
	slices.SortStableFunc(further, func(a, b C) int { return cmp.Compare(rank(a), rank(b)) })
	return further[:surplus]
}
