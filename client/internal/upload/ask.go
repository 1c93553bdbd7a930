package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

const (
	// answerPatience is how long the server may take to answer a request without a body.
	answerPatience = 10 * time.Second
	// movePatience is how long the server may take to move a file: some servers copy it.
	movePatience = time.Minute
	// mostTries is how often the client repeats a request that the server cannot answer now.
	mostTries = 5
	// mostFailures is how often connections may fail before an answer.
	mostFailures = 3
)

var (
	// errNoAnswer ends an attempt, and errUnanswered all of them.
	errNoAnswer   = errors.New("no answer came")
	errUnanswered = errors.New("the server does not answer")
)

// asker asks the server about files over one connection, that of the first link that connects.
// When the connection fails, it uses another link.
type asker struct {
	upload *upload
	// conn is nil while there is no connection. by is the link of conn, or of the last one.
	conn httpConn
	by   *linkState
	// unsure says that the last request was sent more than once: the server may have done an
	// earlier one.
	unsure bool
}

// ask returns the answer to a request, within the patience. If the server cannot answer now, the
// client repeats the request a few times.
func (a *asker) ask(ctx context.Context, patience time.Duration, q transport.Question) (answer transport.Answer, err error) {
	a.unsure = false
	for try := range mostTries {
		if try > 0 {
			a.unsure = true
			if err := sleep(ctx, transfer.LeastBackoff<<try); err != nil {
				return answer, err
			}
		}
		err = a.do(ctx, patience, func(ctx context.Context, conn httpConn) (err error) {
			answer, err = conn.Exchange(ctx, a.upload.as(q))
			return err
		})
		if err != nil || !(&refusal{code: answer.Code}).passesWhole() {
			break
		}
	}
	return answer, err
}

// do does something over a connection, and over another one if that fails. It gives up after a few
// failures, or when no connection was made for as long as the user allows.
func (a *asker) do(ctx context.Context, patience time.Duration, what func(context.Context, httpConn) error) error {
	u := a.upload
	limited, cancel := ctx, context.CancelFunc(func() {})
	if u.GiveUp > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, u.GiveUp, errNoAnswer)
	}
	defer cancel()
	broken := 0
	var last error
	for pause := transfer.LeastBackoff; ; pause = min(2*pause, transfer.MostBackoff) {
		err := a.connect(limited)
		if err == nil {
			if err = a.attempt(limited, patience, what); err == nil {
				return nil
			}
			broken++
			a.unsure = true
			u.mu.Lock()
			if a.by.problem == nil || !errors.Is(err, errNoAnswer) {
				a.by.problem = err
			}
			u.mu.Unlock()
			err = fmt.Errorf("%s: %w", a.by.Name, err)
		}
		if last == nil || link.Wait(err) == 0 && !errors.Is(err, errNoAnswer) {
			last = err // Else last names the cause better.
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !u.Rescue, isHopeless(err):
			return err
		case broken == mostFailures:
			return fmt.Errorf("%w: %w", errUnanswered, last)
		}
		if sleep(limited, max(pause, link.Wait(err))) != nil && ctx.Err() == nil {
			return fmt.Errorf("nothing got to the server for %s: %w", u.GiveUp, last)
		}
	}
}

// isHopeless reports whether every link meets a refusal of TLS, which another connection
// would meet too.
func isHopeless(err error) bool {
	var of failures
	return errors.As(err, &of) && !slices.ContainsFunc(of, func(err error) bool { return !transfer.IsRefusal(err) })
}

// attempt does something over the connection, and closes the connection on failure.
func (a *asker) attempt(ctx context.Context, patience time.Duration, what func(context.Context, httpConn) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	err := what(ctx, a.conn)
	if err != nil {
		a.close()
		err = cmp.Or(context.Cause(ctx), err)
	}
	return err
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}

// failures are those of all links.
type failures []error

func (f failures) Error() string {
	var said []string
	for _, err := range f {
		said = append(said, err.Error())
	}
	return strings.Join(said, "; ")
}

func (f failures) Unwrap() []error { return f }

// connect makes a connection if there is none, over the first link that connects. It tries the link
// whose connection failed last as the last one.
func (a *asker) connect(ctx context.Context) error {
	if a.conn != nil && a.conn.Usable() {
		return nil
	}
	a.close()
	links := slices.DeleteFunc(slices.Clone(a.upload.links), func(l *linkState) bool { return l == a.by })
	if len(links) > 0 {
		if err := a.race(ctx, links); err == nil || a.by == nil || ctx.Err() != nil {
			return err
		}
	}
	return a.race(ctx, []*linkState{a.by})
}

// race connects over all these links, and keeps the first connection.
func (a *asker) race(ctx context.Context, links []*linkState) error {
	between := time.Duration(0)
	if a.upload.Rescue {
		between = transfer.LeastBackoff
	}
	ctx, cancel := context.WithTimeoutCause(ctx, connectPatience, errSilent)
	defer cancel()
	var mu sync.Mutex
	var racing sync.WaitGroup
	failed := make(failures, len(links))
	for i, l := range links {
		racing.Go(func() {
			conn, _, err := l.open(ctx, between, 0)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed[i] = fmt.Errorf("%s: %w", l.Name, cmp.Or(context.Cause(ctx), err))
			case a.conn == nil:
				a.conn, a.by = conn, l
				cancel()
			default:
				conn.Close()
			}
		})
	}
	racing.Wait()
	if a.conn != nil {
		return nil
	}
	return failed
}

// close closes the connection, if there is one.
func (a *asker) close() {
	if a.conn != nil {
		a.conn.Close()
		a.conn = nil
	}
}

// said is what an answer says, fit for a message.
func said(a transport.Answer) string { return printable.Quote(a.Status) }
