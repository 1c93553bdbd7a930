package download

import (
	"errors"
	"fmt"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

// Slice is a part of a resource whose size is not known yet, from First to Last. A negative Last
// stands for the end. A negative First counts from the end.
type Slice struct{ First, Last quantity.Bytes }

// of returns the slice's range of a resource of that size; -1 is an unknown size.
func (s Slice) of(size quantity.Bytes) (ranges.Range, error) {
	first, last := s.First, s.Last
	switch {
	case size < 0:
		return ranges.Range{}, errors.New("the server does not tell the size of the file, without which a part of it is not known")
	case first < 0:
		first, last = max(0, size+first), size-1
	case last < 0 || last >= size:
		last = size - 1
	}
	if first > last {
		return ranges.Range{}, fmt.Errorf("the range begins behind the end of the file, which has %d bytes", int64(size))
	}
	return ranges.Range{Offset: first, Length: last - first + 1}, nil
}
