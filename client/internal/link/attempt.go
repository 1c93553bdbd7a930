package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Attempt is one request as the Pacer sees it, with the connections that were made for it.
// It reports the outcome of these connections. net/http may make several for one request.
type Attempt struct {
	mu sync.Mutex
	// made are the connections dialled for the request. used is the one that carries it.
	made []*Trial
	used *Trial
	left bool
}

type attemptKey struct{}

// WithAttempt returns a context whose connections belong to a new Attempt.
func WithAttempt(ctx context.Context) (context.Context, *Attempt) {
	a := &Attempt{}
	return context.WithValue(ctx, attemptKey{}, a), a
}

// attemptOf returns the Attempt of a context, nil if there is none.
func attemptOf(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

var errNoUse = errors.New("the server ends the connection without an answer")

// again is called before another connection is dialled. The connections before it have
// failed, unless they serve another request.
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

// serves reports whether the connection carries another request.
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
		if a.left {
			t.Leave()
		}
	}
}

// Uses tells which connection carries the request.
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

// Prove tells that useful bytes have arrived.
func (a *Attempt) Prove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used.Prove()
}

// Leave tells that nobody waits for the answer any more.
func (a *Attempt) Leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = true
	a.used.Leave()
	for _, t := range a.made {
		if !t.serves(a) {
			t.Leave()
		}
	}
}

// Fail tells that no useful bytes will arrive, though the request still waits.
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
