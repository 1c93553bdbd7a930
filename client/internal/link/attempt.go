package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Attempt is a request as the Pacer sees it: the connections that it has, of which
// it tells what came of them. net/http may make several for one request.
type Attempt struct {
	mu sync.Mutex
	// made are the connections dialled for it, and used is that which it is on.
	made []*Trial
	used *Trial
}

type attemptKey struct{}

// WithAttempt returns a context whose connections are those of an Attempt.
func WithAttempt(ctx context.Context) (context.Context, *Attempt) {
	a := &Attempt{}
	return context.WithValue(ctx, attemptKey{}, a), a
}

// attemptOf is nil if there is none.
func attemptOf(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

var errNoUse = errors.New("the server ends the connection without an answer")

// again is called before another connection is dialled: those before came to nothing,
// unless they serve another request.
func (a *Attempt) again() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.made {
		if !t.serves(a) {
			t.Fail(errNoUse)
		}
	}
	if len(a.made) >= mostOfOne {
		return fmt.Errorf("%w, %d times in a row", errNoUse, len(a.made))
	}
	return nil
}

// serves reports whether the connection has a request of somebody else's.
func (t *Trial) serves(a *Attempt) bool {
	t.server.pacer.mu.Lock()
	defer t.server.pacer.mu.Unlock()
	return t.user != nil && t.user != a
}

func (a *Attempt) dialled(t *Trial) {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.made = append(a.made, t)
	}
}

// Uses says on which connection the request is.
func (a *Attempt) Uses(t *Trial) {
	if t != nil {
		t.server.pacer.mu.Lock()
		t.user = a
		t.server.pacer.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = t
}

// Prove says that something useful came.
func (a *Attempt) Prove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Prove()
}

// Fail says that nothing useful will come, though somebody waits for it.
func (a *Attempt) Fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Fail(err)
	for _, t := range a.made {
		if !t.serves(a) {
			t.Fail(err)
		}
	}
}
