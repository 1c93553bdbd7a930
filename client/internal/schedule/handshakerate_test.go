package schedule

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestHandshakeRate(t *testing.T) {
	const ms = time.Millisecond
	var s Shown
	s.Add(20*ms, 1500)
	testkit.Same(t, s.Rate(), 0)
	s.Add(22*ms, 1500)
	s.Add(23*ms, 1500)
	s.Add(24*ms+PaceWindow, 1500) // of another time
	if got := s.Rate(); got != 8e6 {
		t.Errorf("3000 bytes in 3 ms show %v bit/s", float64(got))
	}
	if got := s.Most(); got != 32e6 {
		t.Errorf("at most %v bit/s, want four times as much", float64(got))
	}
}

// What counts is the time since the connection before, not since the program's start.
func TestHandshakeRateOfALateLink(t *testing.T) {
	const start = 10 * time.Second
	var s Shown
	s.Add(start, 1500)
	s.Add(start+PaceWindow, 62_500)
	if got := s.Rate(); got != 1e6 {
		t.Errorf("62500 bytes in half a second show %v bit/s", float64(got))
	}
}
