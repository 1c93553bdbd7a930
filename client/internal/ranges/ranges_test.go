package ranges

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// With any sizes, the ranges follow one another without gap or overlap. The payload is complete
// exactly when all of them have arrived.
func TestEveryByteIsAssignedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		whole := Range{Offset: quantity.Bytes(random.Int64N(100)), Length: quantity.Bytes(random.Int64N(1000))}
		p := NewPayload(whole)
		var taken []Range
		end := whole.Offset
		for {
			bytes := quantity.Bytes(random.Int64N(200)) - 20
			r, ok := p.Take(bytes, math.MaxInt64)
			if !ok {
				if bytes > 0 {
					break
				}
				continue
			}
			if r.Offset != end || r.Length < 1 || r.Length > bytes {
				t.Fatalf("Take(%d) = %+v after byte %d of %+v", bytes, r, end, whole)
			}
			end = r.End()
			if free := p.Free(math.MaxInt64); free != whole.End()-end {
				t.Fatalf("%d bytes free, want %d", free, whole.End()-end)
			}
			taken = append(taken, r)
		}
		if end != whole.End() {
			t.Fatalf("assigned until %d of %+v", end, whole)
		}
		random.Shuffle(len(taken), func(i, j int) { taken[i], taken[j] = taken[j], taken[i] })
		for _, r := range taken {
			if p.Complete() {
				t.Fatalf("complete before %+v of %+v has arrived", r, whole)
			}
			if arrived := p.Arrived(r); arrived != r.Length {
				t.Fatalf("%d bytes of %+v arrived", arrived, r)
			}
		}
		if !p.Complete() {
			t.Fatalf("not complete after all of %+v", whole)
		}
	}
}

// With earlier bytes, requests that end early and a limit, every byte is assigned until it has
// arrived, and arrives once.
func TestReleasedBytesAreAssignedAgain(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		const size = 500
		have := Range{Offset: quantity.Bytes(random.Int64N(int64(size))), Length: 100}
		p := NewPayload(Range{Length: size}, have)
		var arrived [size + 100]int
		for i := have.Offset; i < have.End(); i++ {
			arrived[i]++
		}
		limit := quantity.Bytes(0)
		for !p.Complete() {
			r, ok := p.Take(1+quantity.Bytes(random.Int64N(100)), limit)
			if !ok {
				if p.Free(limit) != 0 {
					t.Fatalf("nothing to take of %d bytes before %d", p.Free(limit), limit)
				}
				limit += quantity.Bytes(random.Int64N(50))
				continue
			}
			if r.End() > limit {
				t.Fatalf("took %+v beyond %d", r, limit)
			}
			part := Range{Offset: r.Offset, Length: quantity.Bytes(random.Int64N(int64(r.Length + 1)))}
			p.Arrived(part)
			p.Release(Range{Offset: part.End(), Length: r.Length - part.Length})
			for i := part.Offset; i < part.End(); i++ {
				arrived[i]++
			}
		}
		for i, times := range arrived[:size] {
			if times != 1 {
				t.Fatalf("byte %d arrived %d times", i, times)
			}
		}
	}
}

// A range is taken whole or not at all.
func TestTakeAllTakesFreeRangesAlone(t *testing.T) {
	for _, test := range []struct {
		r    Range
		want bool
	}{
		{Range{Offset: 0, Length: 10}, true},
		{Range{Offset: 90, Length: 10}, true},
		{Range{Offset: 20, Length: 30}, true},
		{Range{Offset: 49, Length: 2}, false},
		{Range{Offset: 59, Length: 2}, false},
		{Range{Offset: 50, Length: 10}, false},
		{Range{Offset: 45, Length: 20}, false},
		{Range{Offset: 0, Length: 100}, false},
		{Range{Offset: 95, Length: 6}, false},
	} {
		p := NewPayload(Range{Length: 100})
		if !p.TakeAll(Range{Offset: 50, Length: 10}) {
			t.Fatal("what is free is not taken")
		}
		testkit.Same(t, p.TakeAll(test.r), test.want, test.r)
		left := quantity.Bytes(90)
		if test.want {
			left -= test.r.Length
		}
		testkit.Same(t, p.Free(100), left, test.r)
	}
}

// TakeBeginning assigns what is free of the beginning of a range, up to the next assigned byte.
func TestTakeBeginning(t *testing.T) {
	p := NewPayload(Range{Length: 100})
	p.TakeAll(Range{Offset: 60, Length: 10})
	for _, test := range []struct{ offset, length, want quantity.Bytes }{{60, 40, 0}, {69, 31, 0}, {40, 60, 20}, {40, 60, 0}, {70, 10, 10}, {80, 0, 0}, {80, 90, 20}, {100, 5, 0}, {0, 100, 40}} {
		testkit.Same(t, p.TakeBeginning(Range{Offset: test.offset, Length: test.length}), test.want, test.length, test.offset)
	}
}
