// Package overheard keeps what a program under test writes while it runs.
package overheard

import (
	"bytes"
	"sync"
)

// Text is what was written so far. It is for several goroutines.
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

// String is the text.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
