package throughput

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// A TLS record arrives at its end.
func TestRecordsAreNotUnderAFloor(t *testing.T) {
	f := Floor{Rate: 200, Span: 5 * time.Minute}
	for now := time.Second; now <= time.Hour; now += time.Second {
		if records := quantity.Bytes(now / (131 * time.Second)); f.IsUnder(now, records<<14) {
			t.Errorf("1 kbit/s in records of 16 KiB is under the floor after %v", now)
		}
	}
}

// The judge looks at whole spans: each begins where the last one was judged.
func TestAFloorJudgesWholeSpans(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	verdicts := map[bool]int{}
	for range 200 {
		f := Floor{Rate: quantity.Rate(8 * (1 + chance.IntN(1000))), Span: time.Duration(1+chance.IntN(9)) * time.Second}
		now := time.Duration(chance.IntN(5000)) * ms
		total := quantity.Bytes(chance.IntN(5000))
		f.Restart(now, total)
		from, before := now, total
		for range 100 {
			now += time.Duration(1+chance.IntN(1000)) * ms
			total += quantity.Bytes(chance.IntN(600))
			under := f.IsUnder(now, total)
			if now-from < f.Span {
				if under {
					t.Fatalf("it judges %v of a span of %v", now-from, f.Span)
				}
				continue
			}
			if want := float64(total-before)*8/(now-from).Seconds() < float64(f.Rate); under != want {
				t.Fatalf("%d bytes in %v at a floor of %v: under %v", int64(total-before), now-from, f.Rate, under)
			}
			verdicts[under]++
			from, before = now, total
		}
	}
	testkit.Holds(t, min(verdicts[false], verdicts[true]) >= 100, verdicts)
}
