// Package regularly calls a function at intervals.
package regularly

import (
	"context"
	"time"
)

// Do calls f after each interval until ctx ends. After a call longer than an interval, one call
// follows at once, not one for each missed interval.
func Do(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}
