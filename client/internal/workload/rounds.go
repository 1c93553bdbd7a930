package workload

import (
	"context"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

// Rounds sends one message after another. Each waits for the answer before it and a time to think.
type Rounds struct {
	// Request is the size of a message.
	Request quantity.Bytes
	// Answers are the parts of the file in the answers.
	Answers []ranges.Range
	// Think is the time from an answer to the next message.
	Think time.Duration
}

func (Rounds) Name() string { return "rounds" }

func (Rounds) connections() int { return 1 }

func (w Rounds) run(ctx context.Context, s *session) (Figures, error) {
	times := make([]time.Duration, len(w.Answers))
	for i, answer := range w.Answers {
		if i > 0 && w.Think > 0 {
			if err := s.sleep(ctx, s.now()+w.Think); err != nil {
				return nil, err
			}
		}
		took, err := s.fetch(ctx, message{number: i + 1, part: answer, body: w.Request}, s.add)
		if err != nil {
			return nil, err
		}
		times[i] = took
	}
	return Figures{
		"latency_s":     percentile(times, 50).Seconds(),
		"latency_p90_s": percentile(times, 90).Seconds(),
		"latency_p99_s": percentile(times, 99).Seconds(),
		"latency_max_s": percentile(times, 100).Seconds(),
	}, nil
}
