package throughput

import (
	"math"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// Samples of 8, 16 and 24 Mbit/s have a deviation of 8 and a mean of 16.
func TestVariation(t *testing.T) {
	m := NewMeter(time.Second)
	m.Start(0)
	for i := range 12 {
		m.Add(time.Duration(i+1)*250*time.Millisecond, 250_000*quantity.Bytes(1+i/4))
		testkit.Holds(t, i >= 7 || m.Variation() == 0, i+1, m.Variation())
	}
	if got := m.Variation(); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("it varies by %g, want .5", got)
	}
}
