// Package eventually has tests wait for what happens on the real clock.
package eventually

import (
	"testing"
	"time"
)

const (
	// between is from one look to the next.
	between = 10 * time.Millisecond
	// patience is how long a test waits on a busy machine.
	patience = time.Minute
)

// Is returns when holds does. It fails the test if that takes too long.
func Is(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(between) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
