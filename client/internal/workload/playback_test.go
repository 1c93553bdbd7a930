package workload

import (
	"math"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
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
	if p.Startup != 0 || p.Buffered() != 4999 {
		t.Errorf("it plays with %d bytes", p.Buffered())
	}
	p.Receive(3*second, 1) // This plays from 3 s to 8 s.
	p.Receive(10*second, 4000)
	p.Receive(12*second, 6000) // This plays 10000 bytes, to 22 s.
	p.Receive(21*second, 84_999)
	p.Receive(30*second, 1)
	want := []change{{3 * second, true}, {8 * second, false}, {12 * second, true}}
	if len(changes) != len(want) || changes[0] != want[0] || changes[1] != want[1] || changes[2] != want[2] {
		t.Errorf("changes are %v, want %v", changes, want)
	}
	if p.Startup != 3*second || p.Stalls != 1 || p.Stalled != 4*second {
		t.Errorf("startup %s, %d stalls of %s", p.Startup, p.Stalls, p.Stalled)
	}
	if end := p.End(); end != 107*second {
		t.Errorf("it ends at %s: 100 s, and 7 s of waiting are expected", end)
	}
}

// The rest of the stream may be below the threshold.
func TestPlaybackOfLessThanTheThreshold(t *testing.T) {
	p := NewPlayback(steady(), Thresholds{Start: 200_000, Low: 1, High: 300_000})
	p.Receive(second, 99_999)
	if p.Startup != 0 {
		t.Error("it plays before the threshold")
	}
	p.Receive(4*second, 1)
	if p.Startup != 4*second || p.End() != 104*second || p.Stalls != 0 {
		t.Errorf("startup %s, end %s, %d stalls", p.Startup, p.End(), p.Stalls)
	}
}

func TestPlaybackRestsWhileItsBufferIsFull(t *testing.T) {
	p := NewPlayback(steady(), Thresholds{Start: 1000, Low: 4000, High: 20_000})
	p.Receive(second, 10_000)
	if rest := p.Rest(second); rest != 0 {
		t.Errorf("it rests %s with half a buffer", rest)
	}
	p.Receive(2*second, 11_000) // 1000 of 21000 bytes are played.
	if rest := p.Rest(2 * second); rest != 16*second {
		t.Errorf("it rests %s, want 16 s: from 20000 bytes to 4000", rest)
	}
	if rest := p.Rest(18 * second); rest != 0 || p.Buffered() != 4000 {
		t.Errorf("after that %d bytes are buffered, and it rests %s", p.Buffered(), rest)
	}
}

func TestMediaOfVaryingRate(t *testing.T) {
	m := NewMedia(1_000_500, 80_000, .5, 7)
	if m.Duration() != 100_050*time.Millisecond {
		t.Errorf("it plays %s", m.Duration())
	}
	if same := NewMedia(1_000_500, 80_000, .5, 7); same.Length(12_345) != m.Length(12_345) {
		t.Error("the same seed gives another stream")
	}
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
	if m.Length(1_000_500) != m.Duration() || m.Bytes(m.Duration()) != 1_000_500 {
		t.Error("the whole is not the whole")
	}
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
	if whole != 100_500 {
		t.Errorf("they end at %d", whole)
	}
	if cut := Pieces(1001, 500); len(cut) != 3 || cut[2].Offset != 1000 || cut[2].Length != 1 {
		t.Errorf("pieces are %v", cut)
	}
}

func TestPercentile(t *testing.T) {
	times := []time.Duration{40, 10, 30, 20}
	for p, want := range map[float64]time.Duration{0: 10, 25: 10, 50: 20, 51: 30, 90: 40, 100: 40} {
		if got := percentile(times, p); got != want {
			t.Errorf("percentile %v is %d, want %d", p, got, want)
		}
	}
	if percentile(nil, 50) != 0 {
		t.Error("none has a percentile")
	}
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
