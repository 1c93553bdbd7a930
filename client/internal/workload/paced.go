package workload

import (
	"context"
	"time"

	"github.com/linklab/linklab/client/internal/ranges"
)

// Paced requests the pieces of a stream at a steady rate. A piece is due at the next request. A late
// piece delays only the later requests.
type Paced struct {
	Pieces []ranges.Range
	// Every is the time between two requests.
	Every time.Duration
}

func (Paced) Name() string { return "paced" }

func (Paced) connections() int { return 1 }

func (w Paced) run(ctx context.Context, s *session) (Figures, error) {
	lateness := make([]time.Duration, len(w.Pieces))
	late := 0
	for i, piece := range w.Pieces {
		if err := s.sleep(ctx, time.Duration(i)*w.Every); err != nil {
			return nil, err
		}
		if _, err := s.fetch(ctx, message{number: i + 1, part: piece}, s.add); err != nil {
			return nil, err
		}
		lateness[i] = max(0, s.now()-time.Duration(i+1)*w.Every)
		if lateness[i] > 0 {
			late++
		}
	}
	return Figures{
		"late":           float64(late),
		"lateness_s":     percentile(lateness, 50).Seconds(),
		"lateness_p90_s": percentile(lateness, 90).Seconds(),
		"lateness_max_s": percentile(lateness, 100).Seconds(),
	}, nil
}
