package schedule

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// The next seconds are expected to repeat the last seconds, the next minutes the last
// minutes.
func TestHistoryMatchesTheTimeAhead(t *testing.T) {
	var h history
	add := func(rate quantity.Rate, lasts time.Duration) {
		for range lasts / (100 * time.Millisecond) {
			h.add(rate, 100*time.Millisecond)
		}
	}
	near := func(over time.Duration, want quantity.Rate) {
		t.Helper()
		if got := h.over(over); got < 0.9*want || got > 1.1*want {
			t.Errorf("%.1f Mbit/s over the next %s, want about %.1f", got.MegabitsPerSecond(), over, want.MegabitsPerSecond())
		}
	}
	add(10e6, 30*time.Second)
	near(0, 10e6)
	near(time.Hour, 10e6)
	add(1e6, 30*time.Second)
	near(0, 1e6)
	// The means over 2, 4, 8, 16 and 32 s, 1 + 9/e^(30/8) and so on, are 1, 1, 1.2, 2.4 and 4.5.
	// They count for 4, 4, 8, 16 and 28 s.
	near(time.Minute, 3.0e6)
	near(time.Hour, 5.6e6) // All there is; its beginning counts for two seconds.
	near(1<<62, 5.6e6)
}
