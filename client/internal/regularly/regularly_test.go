package regularly

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// After a slow call one call follows at once, and not more.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 550*time.Millisecond)
		defer cancel()
		start := time.Now()
		var at []time.Duration
		Do(ctx, 100*time.Millisecond, func() {
			at = append(at, time.Since(start)/time.Millisecond)
			if len(at) == 2 {
				time.Sleep(230 * time.Millisecond)
			}
		})
		testkit.SameList(t, at, []time.Duration{100, 200, 430, 500})
	})
}
