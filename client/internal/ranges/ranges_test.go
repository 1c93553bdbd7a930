package ranges

import (
	"math/rand/v2"
	"testing"
)

// Whatever the sizes, the ranges follow each other without gap or overlap,
// and the payload is complete exactly when all of them have arrived.
func TestEveryByteIsAssignedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		size := random.Int64N(1000)
		p := NewPayload(size)
		var taken []Range
		var end int64
		for {
			bytes := random.Int64N(200) - 20
			r, ok := p.Take(bytes)
			if !ok {
				if bytes > 0 {
					break
				}
				continue
			}
			if r.Offset != end || r.Length < 1 || r.Length > bytes {
				t.Fatalf("Take(%d) = %+v after byte %d of %d", bytes, r, end, size)
			}
			end = r.End()
			if p.Unassigned() != size-end {
				t.Fatalf("%d bytes unassigned, want %d", p.Unassigned(), size-end)
			}
			taken = append(taken, r)
		}
		if end != size {
			t.Fatalf("assigned %d of %d bytes", end, size)
		}
		random.Shuffle(len(taken), func(i, j int) { taken[i], taken[j] = taken[j], taken[i] })
		for _, r := range taken {
			if p.Complete() {
				t.Fatalf("complete before %+v of %d bytes has arrived", r, size)
			}
			p.Arrived(r)
		}
		if !p.Complete() {
			t.Fatalf("not complete after all %d bytes", size)
		}
	}
}
