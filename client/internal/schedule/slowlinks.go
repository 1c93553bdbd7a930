package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// SlowLinks is an algorithm with the fail-over of slow links as the thesis
// proposes it (thesis 8.2.4): a link that is slow loses its requests, and is
// not used any more. Rescue checks the same limits and is kinder.
type SlowLinks struct {
	Scheduler
	// Dynamic compares the link with the others, instead of with 100 kB/s.
	Dynamic bool
}

// slowLinkPeriod is how often links are checked.
const slowLinkPeriod = 100 * time.Millisecond

// Plan makes it a Planner.
func (a SlowLinks) Plan() Plan { return slowLinks{a} }

type slowLinks struct{ SlowLinks }

func (slowLinks) Every() time.Duration { return slowLinkPeriod }

// Use uses all links that were not given up.
func (slowLinks) Use(_ *Scene, use []bool) { useAll(use) }

// Forsake gives a link up that is below the limit, but never the last one.
// What is measured of it is a mean over a whole second first.
func (a slowLinks) Forsake(x int, s *Scene) bool {
	var sum quantity.Rate
	n := 0
	for _, l := range s.Links {
		if !l.Spared {
			sum += l.Throughput
			n++
		}
	}
	if n < 2 || s.Progress[x].Age < time.Second {
		return false
	}
	limit := slowRate
	if a.Dynamic {
		limit = slowPart * sum / quantity.Rate(n)
	}
	return s.Links[x].Throughput < limit
}
