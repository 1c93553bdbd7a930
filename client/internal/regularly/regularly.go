// Package regularly does something again and again.
package regularly

import (
	"context"
	"time"
)

// Do calls f after each interval until ctx ends. A call that takes longer than
// an interval is followed by one, not by all that were due meanwhile.
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
