package throughput

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

const ms = time.Millisecond

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
		peak := quantity.Rate(0)
		for range 50 {
			now += time.Duration(chance.IntN(400)) * ms // Two requests may bring bytes at a time (thesis figure 4.16).
			bytes := quantity.Bytes(chance.IntN(100_000))
			m.Add(now, bytes)
			peak = max(peak, m.Rate(now))
			arrived[now] += bytes
			total += bytes
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
			if got := m.Rate(now); got != want || m.Total() != total || m.Peak() != peak {
				t.Fatalf("at %v: %v, at most %v, and %v bytes, want %v, %v and %v", now, got, m.Peak(), m.Total(), want, peak, total)
			}
		}
	}
}
