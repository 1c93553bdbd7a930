package throughput

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

func TestWhatIsUnderAFloor(t *testing.T) {
	for _, test := range []struct {
		name string
		rate quantity.Rate
		// each is the number of bytes in each second.
		each quantity.Bytes
		want bool
	}{
		{"a byte a second", 200, 1, true},
		{"1 kbit/s", 200, 125, false},
		{"just enough", 200, 25, false},
		{"no floor", 0, 0, false},
	} {
		f := Floor{Rate: test.rate, Span: time.Minute}
		total, under := quantity.Bytes(0), false
		for now := time.Second; now <= 3*time.Minute; now += time.Second {
			total += test.each
			under = under || f.IsUnder(now, total)
		}
		if under != test.want {
			t.Errorf("%s: under %v", test.name, under)
		}
	}
	// A TLS record arrives at its end.
	f := Floor{Rate: 200, Span: 5 * time.Minute}
	for now := time.Second; now <= time.Hour; now += time.Second {
		if records := quantity.Bytes(now / (131 * time.Second)); f.IsUnder(now, records<<14) {
			t.Errorf("1 kbit/s in records of 16 KiB is under the floor after %v", now)
		}
	}
}
