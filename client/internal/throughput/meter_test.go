package throughput

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

const ms = time.Millisecond

func TestRateIsTheMeanOfTheWindow(t *testing.T) {
	m := NewMeter(time.Second)
	m.Start(100 * ms)
	for _, step := range []struct {
		at    time.Duration
		bytes quantity.Bytes
		want  float64 // B/s
	}{
		{200 * ms, 1000, 10_000}, // 1000 B in the 100 ms since the start
		{600 * ms, 1000, 4000},   // 2000 B in 500 ms
		{1100 * ms, 1000, 3000},  // 3000 B in a whole window
		{1200 * ms, 500, 2500},   // The bytes of 200 ms have left the window.
		{5000 * ms, 0, 0},
	} {
		if step.bytes > 0 {
			m.Add(step.at, step.bytes)
		}
		testkit.Same(t, m.Rate(step.at).BytesPerSecond(), step.want, step.at)
	}
	testkit.Holds(t, m.Peak() == 80_000 && m.Total() == 3500, m.Peak(), m.Total())
}

// Two requests in flight share a link. Its throughput is their sum (thesis figure 4.16), and does
// not decrease when one of them ends.
func TestOverlappingRequestsAddUp(t *testing.T) {
	m := NewMeter(time.Second)
	m.Start(0)
	for at := 10 * ms; at <= 2000*ms; at += 10 * ms {
		if at <= 1500*ms {
			m.Add(at, 60) // One request.
			m.Add(at, 40) // The other one.
		} else {
			m.Add(at, 100) // One request takes everything.
		}
		if got := m.Rate(at).BytesPerSecond(); at >= 1000*ms && got != 10_000 {
			t.Fatalf("rate at %v is %v B/s, want 10000", at, got)
		}
	}
}

func TestNothingIsMeasuredBeforeTheStart(t *testing.T) {
	m := NewMeter(time.Second)
	testkit.Same(t, m.Rate(time.Second), 0)
	m.Start(time.Second)
	m.Start(2 * time.Second)
	m.Add(1500*ms, 1000)
	testkit.Same(t, m.Rate(1500*ms).BytesPerSecond(), 2000)
}

// The judge keeps every arrival, and adds up those of the window since the last start.
func TestAMeterAddsUpTheWindowSinceItsLastStart(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		window := time.Duration(1+chance.IntN(2000)) * ms
		m := NewMeter(window)
		now := time.Duration(chance.IntN(1000)) * ms
		m.Start(now)
		start, arrived, total := now, map[time.Duration]quantity.Bytes{}, quantity.Bytes(0)
		for range 50 {
			now += time.Duration(1+chance.IntN(400)) * ms
			bytes := quantity.Bytes(chance.IntN(100_000))
			m.Add(now, bytes)
			arrived[now], total = bytes, total+bytes
			if chance.IntN(10) == 0 {
				m.Restart(now)
				start, arrived = now, map[time.Duration]quantity.Bytes{}
			}
			var sum quantity.Bytes
			for at, bytes := range arrived {
				if at > now-window {
					sum += bytes
				}
			}
			want := quantity.Rate(0)
			if measured := min(window, now-start); measured > 0 {
				want = sum.Per(measured)
			}
			if got := m.Rate(now); got != want || m.Total() != total {
				t.Fatalf("at %v: %v and %v bytes, want %v and %v", now, got, m.Total(), want, total)
			}
		}
	}
}
