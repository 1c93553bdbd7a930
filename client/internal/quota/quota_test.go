package quota

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"strings"
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
	if !errors.As(err, &reached) || reached.Link != "lte" || !reached.Permanent() || !reached.Until.IsZero() {
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

func TestACapIsOfAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // Its clock begins on 2000-01-01 in UTC, a Saturday.
		time.Sleep(30 * 24 * time.Hour) // To 31 January.
		l := &Link{Cap: 100, Period: Month}
		begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.Local)
		l.Restore(Usage{Since: begin, Bytes: 100})
		if err := l.Err(); err == nil || !strings.HasPrefix(err.Error(), "the data cap of 100 bytes is reached until 2000-02-01T00:00:00") {
			t.Errorf("a used up cap: %v", err)
		}
		time.Sleep(48 * time.Hour)
		if err := l.Err(); err != nil {
			t.Errorf("in the next month: %v", err)
		}
		l.add(7)
		if u := l.Usage(); u.Bytes != 7 || !u.Since.Equal(begin.AddDate(0, 1, 0)) {
			t.Errorf("the next month's account is %+v", u)
		}
	})
}

// These are accounts as a daemon finds them at its start.
func TestAnAccountSurvivesTheClockAndOtherPeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30*24*time.Hour + 12*time.Hour) // To noon of 31 January 2000, a Monday.
		date := func(year int, month time.Month, day int) time.Time {
			return time.Date(year, month, day, 0, 0, 0, 0, time.Local)
		}
		for name, test := range map[string]struct {
			period Period
			kept   Usage
			since  time.Time
			bytes  quantity.Bytes
		}{
			"same":                       {Month, Usage{date(2000, 1, 1), 100, Month}, date(2000, 1, 1), 107},
			"over":                       {Month, Usage{date(1999, 12, 1), 100, Month}, date(2000, 1, 1), 7},
			"clock back to before":       {Month, Usage{date(2000, 2, 1), 100, Month}, date(2000, 2, 1), 107},
			"day, clock back":            {Day, Usage{date(2000, 2, 1), 100, Day}, date(2000, 2, 1), 107},
			"clock was years ahead":      {Month, Usage{date(2030, 5, 1), 100, Month}, date(2000, 1, 1), 107},
			"from a day to a month":      {Month, Usage{date(2000, 1, 31), 100, Day}, date(2000, 1, 1), 107},
			"from an old day to a month": {Month, Usage{date(1999, 12, 31), 100, Day}, date(2000, 1, 1), 7},
			"from a month to a day":      {Day, Usage{date(2000, 1, 1), 100, Month}, date(2000, 1, 31), 7},
			"from a week to a day":       {Day, Usage{date(2000, 1, 31), 100, Week}, date(2000, 1, 31), 107},
			"from a month to always":     {Always, Usage{date(2000, 1, 1), 100, Month}, time.Time{}, 107},
			"from always to a month":     {Month, Usage{time.Time{}, 100, Always}, date(2000, 1, 1), 7},
			"of a version without":       {Month, Usage{Since: date(2000, 1, 1), Bytes: 100}, date(2000, 1, 1), 107},
		} {
			l := &Link{Period: test.period}
			l.Restore(test.kept)
			l.add(7)
			if u := l.Usage(); u.Bytes != test.bytes || !u.Since.Equal(test.since) || u.Period != test.period {
				t.Errorf("%s: the account is %+v, want %d bytes since %v", name, u, test.bytes, test.since)
			}
		}
	})
}

// After the clock was set back, the account continues once its period begins again, and ends with
// that period.
func TestAClockThatIsSetBackDoesNotWipeAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(31*24*time.Hour - time.Minute)
		february := time.Date(2000, 2, 1, 0, 0, 0, 0, time.Local)
		l := &Link{Cap: 100, Period: Month}
		l.Restore(Usage{february, 100, Month})
		for range 2 {
			if err := l.Err(); err == nil || !strings.HasPrefix(err.Error(), "the data cap of 100 bytes is reached until 2000-03-01T00:00:00") {
				t.Errorf("at %v: %v", time.Now(), err)
			}
			time.Sleep(2 * time.Minute)
		}
		time.Sleep(29 * 24 * time.Hour)
		if err := l.Err(); err != nil {
			t.Errorf("in March: %v", err)
		}
	})
}

func TestPeriods(t *testing.T) {
	at := time.Date(2026, 11, 22, 23, 59, 59, 0, time.UTC) // A Sunday.
	for _, test := range []struct {
		period     Period
		begin, end string
	}{
		{Day, "2026-11-22", "2026-11-23"},
		{Week, "2026-11-16", "2026-11-23"},
		{Month, "2026-11-01", "2026-12-01"},
	} {
		begin := test.period.begin(at)
		if end := test.period.end(begin); begin.Format(time.DateOnly) != test.begin || end.Format(time.DateOnly) != test.end {
			t.Errorf("the %s goes from %v to %v, want %s to %s", test.period, begin, end, test.begin, test.end)
		}
	}
}

func TestParseCap(t *testing.T) {
	for text, want := range map[string]struct {
		bytes  quantity.Bytes
		period Period
	}{
		"500MB":       {500_000_000, Always},
		"5GB/day":     {5_000_000_000, Day},
		"1GiB/week":   {1 << 30, Week},
		"2.5GB/month": {2_500_000_000, Month},
	} {
		if bytes, period, err := ParseCap(text); err != nil || bytes != want.bytes || period != want.period {
			t.Errorf("ParseCap(%q) = %d, %q, %v", text, bytes, period, err)
		}
	}
	for text, want := range map[string]string{"5": "", "x": "is not a size", "5GB/year": `"year" is not a period`, "/day": "is not a size"} {
		if _, _, err := ParseCap(text); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("ParseCap(%q) gives %v, want %q", text, err, want)
		}
	}
}

func TestALinkWithoutLimitCounts(t *testing.T) {
	l := &Link{}
	s := connect(t, l)
	if _, err := io.CopyN(io.Discard, s, 123_456); err != nil {
		t.Fatal(err)
	}
	if u := l.Usage(); u.Bytes < 123_456 || l.Err() != nil {
		t.Errorf("usage %+v, error %v", u, l.Err())
	}
}

// A month ends with its last day in the time zone of the traveller.
func TestACapIsKeptByWhoTravelsWest(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.FixedZone("east", 2*3600)
	l := &Link{Name: "lte", Cap: 1000, Period: Month}
	l.add(1000)
	text, err := json.Marshal(l.Usage())
	if err != nil {
		t.Fatal(err)
	}
	time.Local = time.FixedZone("west", -5*3600)
	var kept Usage
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	again := &Link{Name: "lte", Cap: 1000, Period: Month}
	again.Restore(kept)
	// For seven hours the east already has the next month. Then both results are right.
	if now := time.Now(); now.In(time.FixedZone("east", 2*3600)).Month() == now.Month() && again.Usage().Bytes != 1000 {
		t.Errorf("after a flight %d bytes are counted, want 1000", int64(again.Usage().Bytes))
	}
	if begin := time.Date(2026, 12, 1, 0, 0, 0, 0, time.Local); !isLaterDay(begin, begin.AddDate(0, 0, -30)) {
		t.Error("the next month is not later")
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
