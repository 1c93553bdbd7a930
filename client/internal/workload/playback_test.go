package workload

import (
	"math"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

const second = time.Second

// steady plays 1000 bytes a second for 100 seconds.
func steady() *Media { return NewMedia(100_000, 8000, 0, 1) }

func TestPlaybackStalls(t *testing.T) {
	p := NewPlayback(steady(), Thresholds{Start: 5000, Low: 5000, High: 20_000})
	type change struct {
		at      time.Duration
		playing bool
	}
	var changes []change
	p.Notice = func(at time.Duration, playing bool) { changes = append(changes, change{at, playing}) }

	p.Receive(2*second, 4999)
	testkit.Holds(t, p.Startup == 0 && p.Buffered() == 4999, p.Buffered())
	p.Receive(3*second, 1) // This plays from 3 s to 8 s.
	p.Receive(10*second, 4000)
	p.Receive(12*second, 6000) // This plays 10000 bytes, to 22 s.
	p.Receive(21*second, 84_999)
	p.Receive(30*second, 1)
	want := []change{{3 * second, true}, {8 * second, false}, {12 * second, true}}
	testkit.Holds(t, len(changes) == len(want) && changes[0] == want[0] && changes[1] == want[1] && changes[2] == want[2], changes, want)
	testkit.Holds(t, p.Startup == 3*second && p.Stalls == 1 && p.Stalled == 4*second, p.Startup, p.Stalls, p.Stalled)
	testkit.Same(t, p.End(), 107*second)
}

// The rest of the stream may be below the threshold.
func TestPlaybackOfLessThanTheThreshold(t *testing.T) {
	p := NewPlayback(steady(), Thresholds{Start: 200_000, Low: 1, High: 300_000})
	p.Receive(second, 99_999)
	testkit.Same(t, p.Startup, 0)
	p.Receive(4*second, 1)
	testkit.Holds(t, p.Startup == 4*second && p.End() == 104*second && p.Stalls == 0, p.Startup, p.End(), p.Stalls)
}

func TestPlaybackRestsWhileItsBufferIsFull(t *testing.T) {
	p := NewPlayback(steady(), Thresholds{Start: 1000, Low: 4000, High: 20_000})
	p.Receive(second, 10_000)
	testkit.Same(t, p.Rest(second), 0)
	p.Receive(2*second, 11_000) // 1000 of 21000 bytes are played.
	testkit.Same(t, p.Rest(2*second), 16*second)
	if rest := p.Rest(18 * second); rest != 0 || p.Buffered() != 4000 {
		t.Errorf("after that %d bytes are buffered, and it rests %s", p.Buffered(), rest)
	}
}

func TestMediaOfVaryingRate(t *testing.T) {
	m := NewMedia(1_000_500, 80_000, .5, 7)
	testkit.Same(t, m.Duration(), 100_050*time.Millisecond)
	testkit.Same(t, NewMedia(1_000_500, 80_000, .5, 7).Length(12_345), m.Length(12_345))
	var sizes []float64
	var before quantity.Bytes
	for s := second; s <= m.Duration(); s += second {
		bytes := m.Bytes(s)
		if got := m.Length(bytes); got > s || s-got > time.Millisecond {
			t.Errorf("%d bytes play for %s, want %s", bytes, got, s)
		}
		sizes, before = append(sizes, float64(bytes-before)), bytes
	}
	if deviation := relative(sizes); deviation < .35 || deviation > .65 {
		t.Errorf("the seconds deviate by %.2f of their mean, want about .5", deviation)
	}
	testkit.Holds(t, m.Length(1_000_500) == m.Duration() && m.Bytes(m.Duration()) == 1_000_500, "the whole is not the whole")
}

func TestSegments(t *testing.T) {
	m := NewMedia(100_500, 8000, .8, 3)
	var whole quantity.Bytes
	for i, s := range m.Cut(2 * second) {
		if s.Offset != whole {
			t.Fatalf("segment %d begins at %d, want %d", i, s.Offset, whole)
		}
		whole = s.End()
		if length := m.Length(s.End()) - time.Duration(i+1)*2*second; i < 50 && (length > 0 || length < -5*time.Millisecond) {
			t.Errorf("segment %d ends %s late", i, length)
		}
	}
	testkit.Same(t, whole, 100_500)
	if cut := Pieces(1001, 500); len(cut) != 3 || cut[2].Offset != 1000 || cut[2].Length != 1 {
		t.Errorf("pieces are %v", cut)
	}
}

func TestPercentile(t *testing.T) {
	times := []time.Duration{40, 10, 30, 20}
	for p, want := range map[float64]time.Duration{0: 10, 25: 10, 50: 20, 51: 30, 90: 40, 100: 40} {
		testkit.Same(t, percentile(times, p), want, p)
	}
	testkit.Same(t, percentile(nil, 50), 0)
}

// relative returns the standard deviation divided by the mean.
func relative(values []float64) float64 {
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares/float64(len(values))) / mean
}
