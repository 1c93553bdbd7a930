package regularly

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A slow call is followed by the next one at once, and by no more.
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
		if want := []time.Duration{100, 200, 430, 500}; !slices.Equal(at, want) {
			t.Errorf("called at %d ms, want %d", at, want)
		}
	})
}
