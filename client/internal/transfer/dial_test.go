package transfer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/tests/testkit"
)

var errNoAnswer = errors.New("no answer in time")

// silent answers, after a round trip of 60 ms, who asks from a time on. Who asks
// before gets no answer, not even late.
type silent struct {
	until       time.Time
	calls, open atomic.Int32
	// waiting are under way, and most were at a time.
	waiting, most atomic.Int32
}

func (s *silent) dial(ctx context.Context) (link.Socket, error) {
	s.calls.Add(1)
	s.most.Store(max(s.most.Load(), s.waiting.Add(1)))
	defer s.waiting.Add(-1)
	if time.Now().Before(s.until) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(60 * time.Millisecond)
	s.open.Add(1)
	return fromSilent{of: s}, nil
}

// fromSilent is a connection that can only be closed.
type fromSilent struct {
	link.Socket
	of *silent
}

func (c fromSilent) Close() error { c.of.open.Add(-1); return nil }

// It is noticed within a part of an outage, or the first time between attempts, that
// it has ended, by few attempts, of which few are under way at a time.
func TestALinkThatIsBackIsNoticed(t *testing.T) {
	const between = 50 * time.Millisecond
	for _, test := range []struct {
		outage time.Duration
		most   int32
	}{{0, 2}, {2 * time.Second, 42}, {10 * time.Second, 94}, {20 * time.Second, 118}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			server := &silent{until: start.Add(test.outage)}
			socket, err := Dial(t.Context(), server.dial, between)
			if err != nil || socket == nil {
				t.Fatal(err)
			}
			latest := test.outage + max(between, test.outage/askedAgain) + 60*time.Millisecond
			if took := time.Since(start); took > latest || server.calls.Load() > test.most {
				t.Errorf("an outage of %v: connected after %v by %d attempts, want %v and %d", test.outage, took, server.calls.Load(), latest, test.most)
			}
			testkit.Same(t, server.open.Load(), 1)
			if most := server.most.Load(); most > 16 {
				t.Errorf("%d attempts are under way at a time", most)
			}
		})
	}
}

// Several may be answered at last: one is kept. None is left behind by an end.
func TestOfSeveralAttemptsOneIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &silent{}
		slowly := func(context.Context) (link.Socket, error) {
			server.calls.Add(1)
			time.Sleep(900 * time.Millisecond)
			server.open.Add(1)
			return fromSilent{of: server}, nil
		}
		_, err := Dial(t.Context(), slowly, 250*time.Millisecond)
		if calls, open := server.calls.Load(), server.open.Load(); err != nil || open != 1 || calls != 4 {
			t.Errorf("%v, of %d attempts %d are open, want 1 of 4", err, calls, open)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errNoAnswer)
		defer cancel()
		server := &silent{until: time.Now().Add(time.Hour)}
		if _, err := Dial(ctx, server.dial, 250*time.Millisecond); !errors.Is(err, errNoAnswer) || server.open.Load() != 0 {
			t.Errorf("%v, %d are open", err, server.open.Load())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		calls := 0
		_, err := Dial(t.Context(), func(context.Context) (link.Socket, error) { calls++; return nil, refused }, 250*time.Millisecond)
		testkit.Holds(t, errors.Is(err, refused) && calls == 1, err, calls)
	})
}
