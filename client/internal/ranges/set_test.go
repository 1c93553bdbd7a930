package ranges

import (
	"math/rand/v2"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
)

// After any Add and Remove, a set agrees with one boolean for each byte.
func TestSetAgreesWithBooleans(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		const size = 60
		var s Set
		var model [size]bool
		for range 40 {
			offset := quantity.Bytes(random.Int64N(int64(size)))
			r := Range{Offset: offset, Length: quantity.Bytes(random.Int64N(int64(size - offset + 1)))}
			add := random.IntN(2) == 0
			var wantAdded, wantRemoved quantity.Bytes
			for i := r.Offset; i < r.End(); i++ {
				switch {
				case add && !model[i]:
					wantAdded++
				case !add && model[i]:
					wantRemoved++
				}
				model[i] = add
			}
			if add {
				if added := s.Add(r); added != wantAdded {
					t.Fatalf("Add(%+v) = %d, want %d", r, added, wantAdded)
				}
			} else if removed := s.Remove(r); removed != wantRemoved {
				t.Fatalf("Remove(%+v) = %d, want %d", r, removed, wantRemoved)
			}

			var got [size]bool
			end := quantity.Bytes(-1)
			var bytes quantity.Bytes
			for _, r := range s.Ranges() {
				if r.Length <= 0 || r.Offset <= end {
					t.Fatalf("%+v is empty, out of order or touches the one before", s.Ranges())
				}
				end = r.End()
				bytes += r.Length
				for i := r.Offset; i < r.End(); i++ {
					got[i] = true
				}
			}
			if got != model || s.Bytes() != bytes {
				t.Fatalf("the set holds %+v (%d bytes), want %v", s.Ranges(), s.Bytes(), model)
			}
			limit := quantity.Bytes(random.Int64N(int64(size + 5)))
			var below quantity.Bytes
			for i, in := range model {
				if in && quantity.Bytes(i) < limit {
					below++
				}
			}
			if s.Below(limit) != below {
				t.Fatalf("Below(%d) = %d, want %d of %+v", limit, s.Below(limit), below, s.Ranges())
			}
			if first := s.First(); len(s.Ranges()) > 0 && first != s.Ranges()[0] || len(s.Ranges()) == 0 && first != (Range{}) {
				t.Fatalf("First() = %+v of %+v", first, s.Ranges())
			}
		}
	}
}
