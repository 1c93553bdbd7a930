// Package capture keeps the output of a program under test while it runs.
package capture

import (
	"bytes"
	"sync"
)

// Text is the output so far. Several goroutines may use it.
type Text struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the text. It never fails.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String returns the text.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
