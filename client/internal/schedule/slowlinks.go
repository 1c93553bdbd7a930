package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// SlowLinks adds the failover of slow links of thesis 8.2.4 to an algorithm: a slow
// link loses its requests and is not used again. Rescue checks the same limits, but
// uses the link again later.
type SlowLinks struct {
	Scheduler
	// Dynamic compares a link with the mean of all links instead of with 100 kB/s.
	Dynamic bool
}

// slowLinkPeriod is the check interval.
const slowLinkPeriod = 100 * time.Millisecond

func (a SlowLinks) Plan() Plan { return slowLinks{a} }

type slowLinks struct{ SlowLinks }

func (slowLinks) Every() time.Duration { return slowLinkPeriod }

// Use uses every link. The engine itself leaves out forsaken links.
func (slowLinks) Use(_ *Scene, use []bool) { useAll(use) }

// Forsake reports whether link x is below the limit. The last link always stays. In
// its first second a link has no mean rate yet, so it stays, too.
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
