package quota

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type socket struct{ net.Conn }

func (socket) Await(quantity.Bytes, quantity.Bytes)   {}
func (socket) Owes(bool)                              {}
func (socket) Trial() *link.Trial                     { return nil }
func (socket) Ask() error                             { return nil }
func (socket) Answered() (time.Duration, bool, error) { return 0, false, errors.ErrUnsupported }
func (socket) RoundTrip() (link.RoundTrip, error)     { return link.RoundTrip{}, nil }

// connect dials through l. The server sends without end.
func connect(t *testing.T, l *Link) link.Socket {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		for {
			if _, err := far.Write(make([]byte, 10_000)); err != nil {
				return
			}
		}
	}()
	s, err := l.Dialer(func(context.Context, string) (link.Socket, error) { return socket{near}, nil })(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// within fails unless d is within 1 % of want.
func within(t *testing.T, what string, d, want time.Duration) {
	t.Helper()
	if math.Abs(float64(d-want)) > float64(want)/100 {
		t.Errorf("%s took %v, want %v", what, d, want)
	}
}

func TestALimitedLinkKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, &Link{Rates: []*rate.Limiter{NewRate(8e6)}})
		defer s.Close()
		begin := time.Now()
		if _, err := io.CopyN(io.Discard, s, 20_100_000); err != nil {
			t.Fatal(err)
		}
		within(t, "20 MB at 1 MB/s", time.Since(begin), 20*time.Second)
	})
}

func TestLinksShareARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := NewRate(24e6)
		done := make(chan time.Duration)
		begin := time.Now()
		for _, own := range []quantity.Rate{8e6, 800e6} {
			s := connect(t, &Link{Rates: []*rate.Limiter{NewRate(own), all}})
			defer s.Close()
			go func() {
				io.CopyN(io.Discard, s, int64(min(own, 16e6).Over(10*time.Second)))
				done <- time.Since(begin)
			}()
		}
		within(t, "10 MB and 20 MB at 3 MB/s in all", max(<-done, <-done), 10*time.Second)
	})
}

func TestCloseEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, &Link{Rates: []*rate.Limiter{NewRate(1)}})
		read := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, s)
			read <- err
		}()
		synctest.Wait()
		begin := time.Now()
		s.Close()
		if err := <-read; err == nil {
			t.Error("a closed connection reads on")
		}
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("Close took %v to end a read", waited)
		}
	})
}

func TestACapEndsConnectionsAndRefusesNewOnes(t *testing.T) {
	l := &Link{Name: "lte", Cap: 1_000_000}
	s := connect(t, l)
	copied, err := io.Copy(io.Discard, s)
	n := quantity.Bytes(copied)
	var reached *CapError
	if !errors.As(err, &reached) || reached.Link != "lte" || !reached.Permanent() {
		t.Errorf("the connection ends with %v", err)
	}
	if n < l.Cap || n > l.Cap+32<<10 {
		t.Errorf("%d bytes passed, want %d and at most one read more", n, l.Cap)
	}
	if _, err := s.Write([]byte("x")); !errors.As(err, &reached) {
		t.Errorf("writing gives %v", err)
	}
	_, err = l.Dialer(func(context.Context, string) (link.Socket, error) {
		t.Error("a link beyond its cap dials")
		return nil, nil
	})(t.Context(), "")
	if !errors.As(err, &reached) || err.Error() != "the data cap of 1000000 bytes is reached" {
		t.Errorf("dialling gives %v", err)
	}
}

// told is a socket that records its settings.
type told struct {
	link.Socket
	limit              int
	filled, discarding bool
}

func (s *told) LimitUnsent(bytes int) error    { s.limit = bytes; return nil }
func (s *told) FillSegments(always bool) error { s.filled = always; return nil }
func (s *told) DiscardUnsent() error           { s.discarding = true; return nil }

// With a cap, an upload can still configure how the socket sends.
func TestALimitedSocketIsToldHowToSend(t *testing.T) {
	below := &told{}
	l := &Link{Name: "lte", Cap: 1 << 40}
	socket, err := l.Dialer(func(context.Context, string) (link.Socket, error) { return below, nil })(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := socket.(link.Sender)
	if err := errors.Join(s.LimitUnsent(7), s.FillSegments(true), s.DiscardUnsent()); err != nil || *below != (told{nil, 7, true, true}) {
		t.Errorf("the socket was told %+v, %v", below, err)
	}
}

// A larger read would pass before its time: the link is idle afterwards, but its first bytes are early.
func TestNoReadExceedsABurst(t *testing.T) {
	for _, limit := range []quantity.Rate{8e4, 8e6, 8e8} {
		synctest.Test(t, func(t *testing.T) {
			allowed := []*rate.Limiter{NewRate(1e12), NewRate(limit), NewRate(2 * limit)}
			s := connect(t, &Link{Rates: allowed})
			defer s.Close()
			begin, burst := time.Now(), max(int(limit.Over(burst)), minBurst)
			for passed, buffer := 0, make([]byte, 1<<20); passed < 4*burst; {
				n, err := s.Read(buffer)
				passed += n
				if most := int(limit.Over(time.Since(begin))) + burst + 1; err != nil || n > burst || passed > most {
					t.Fatalf("%v: a read has %d bytes, in all %d of %d: %v", limit, n, passed, most, err)
				}
			}
		})
	}
}
