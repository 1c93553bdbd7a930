package ranges

import (
	"slices"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Set is a set of bytes. The zero value is empty.
type Set struct {
	// ranges are in ascending order. None is empty, and none touches the next one.
	ranges []Range
}

// NewSet returns the union of the ranges.
func NewSet(ranges ...Range) *Set {
	s := &Set{}
	for _, r := range ranges {
		s.Add(r)
	}
	return s
}

// Ranges returns the bytes of the set as the fewest ranges, in ascending order.
func (s *Set) Ranges() []Range { return slices.Clone(s.ranges) }

// First returns the first contiguous range, which is empty for an empty set.
func (s *Set) First() Range {
	if len(s.ranges) == 0 {
		return Range{}
	}
	return s.ranges[0]
}

// Bytes returns the number of bytes in the set.
func (s *Set) Bytes() (sum quantity.Bytes) {
	for _, r := range s.ranges {
		sum += r.Length
	}
	return sum
}

// Below returns the number of bytes in the set before the offset limit.
func (s *Set) Below(limit quantity.Bytes) (sum quantity.Bytes) {
	for _, r := range s.ranges {
		if r.Offset >= limit {
			break
		}
		sum += min(r.End(), limit) - r.Offset
	}
	return sum
}

// Add adds bytes and returns how many of them were not in the set.
func (s *Set) Add(r Range) (added quantity.Bytes) {
	if r.Length <= 0 {
		return 0
	}
	added = r.Length
	// from is the first range that touches r, and to follows the last one.
	from := s.search(func(other Range) bool { return other.End() >= r.Offset })
	to := s.search(func(other Range) bool { return other.Offset > r.End() })
	for _, other := range s.ranges[from:to] {
		added -= max(0, min(other.End(), r.End())-max(other.Offset, r.Offset))
	}
	if from < to {
		end := max(r.End(), s.ranges[to-1].End())
		r.Offset = min(r.Offset, s.ranges[from].Offset)
		r.Length = end - r.Offset
	}
	s.ranges = slices.Replace(s.ranges, from, to, r)
	return added
}

// Remove removes bytes and returns how many of them were in the set.
func (s *Set) Remove(r Range) (removed quantity.Bytes) {
	if r.Length <= 0 {
		return 0
	}
	// from is the first range that overlaps r, and to follows the last one.
	from := s.search(func(other Range) bool { return other.End() > r.Offset })
	to := s.search(func(other Range) bool { return other.Offset >= r.End() })
	if from >= to {
		return 0
	}
	var both [2]Range
	rest := both[:0]
	for _, other := range s.ranges[from:to] {
		removed += min(other.End(), r.End()) - max(other.Offset, r.Offset)
	}
	if first := s.ranges[from]; first.Offset < r.Offset {
		rest = append(rest, Range{Offset: first.Offset, Length: r.Offset - first.Offset})
	}
	if last := s.ranges[to-1]; last.End() > r.End() {
		rest = append(rest, Range{Offset: r.End(), Length: last.End() - r.End()})
	}
	s.ranges = slices.Replace(s.ranges, from, to, rest...)
	return removed
}

// search returns the index of the first range for which reached is true. reached must be true for
// all later ranges.
func (s *Set) search(reached func(Range) bool) int {
	for i, r := range s.ranges {
		if reached(r) {
			return i
		}
	}
	return len(s.ranges)
}
