package partfile

import (
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// Slice writes a part of a resource as a file.
type Slice struct {
	*File
	offset quantity.Bytes
}

// Begin prepares for the part, and returns the ranges from earlier downloads.
func (s *Slice) Begin(resource transport.Resource, part ranges.Range) ([]ranges.Range, error) {
	s.offset = part.Offset
	if part.Length != resource.Size {
		resource.SHA256 = nil // The checksum is of the whole resource.
	}
	resource.Size = part.Length
	have, err := s.File.Begin(resource, ranges.Range{Length: part.Length})
	for i := range have {
		have[i].Offset += s.offset
	}
	return have, err
}

// WriteAt writes p at an offset in the whole resource.
func (s *Slice) WriteAt(p []byte, offset int64) (int, error) {
	return s.File.WriteAt(p, offset-int64(s.offset))
}
