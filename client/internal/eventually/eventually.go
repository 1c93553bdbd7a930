// Package eventually lets tests wait for a condition on the real clock.
package eventually

import (
	"testing"
	"time"
)

const (
	// between is the interval of the checks.
	between = 10 * time.Millisecond
	// patience is how long a test waits on a busy machine.
	patience = time.Minute
)

// Is returns when holds returns true. It fails the test if that takes too long.
func Is(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(between) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
