package testkit

import (
	"bytes"
	"sync"
)

// Text is the output so far of a program under test. Several goroutines may use it.
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
