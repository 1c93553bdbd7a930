package testkit

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

// Eventually returns when holds returns true, by the real clock. It fails the test if that takes too long.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(between) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
