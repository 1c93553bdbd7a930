package partfile

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// Two files may have the same size, date and ETag: many servers make an ETag of
// nothing but date and size. Under another URL those prove too little, so that a
// sample of the part is asked for again and compared. Blocks of one and the same
// byte prove nothing. sampleTries bounds how many of these are read for each one.
const (
	sampleBlocks = 4
	sampleSize   = 16 << 10
	sampleTries  = 64
)

// fits reports whether the state is of the resource. A checksum proves that
// alone, because it is compared at the end.
func (f *File) fits(s state, r transport.Resource) bool {
	switch {
	case !f.canResume(r), s.Size != int64(r.Size), s.proven() == 0:
		return false
	case f.isChecksum(s):
		return true
	}
	return s.ETag == r.ETag && s.LastModified == r.LastModified && (s.URL == f.URL || r.HasValidator())
}

// isChecksum reports whether the state is of a file with the same checksum.
func (f *File) isChecksum(s state) bool {
	return f.Checksum != nil && s.Checksum == hex.EncodeToString(f.Checksum)
}

// goOn prepares to go on with the part, whose state fits, and returns what of
// it is there; nothing if no sample could prove it.
func (f *File) goOn(s state) []ranges.Range {
	have := ranges.NewSet(s.ranges()...)
	if s.URL != f.URL && !f.isChecksum(s) {
		f.sample = f.sampled(s)
		if len(f.sample) == 0 {
			return nil
		}
		for _, r := range f.sample {
			have.Remove(r)
			f.unsure.Add(r)
		}
	}
	f.earlier = s
	return have.Ranges()
}

// sampled chooses blocks that are spread over what is there.
func (f *File) sampled(s state) (sample []ranges.Range) {
	var memory [sampleSize]byte
	proven, from := s.proven(), int64(0)
	for spot := range int64(sampleBlocks) {
		from = max(from, proven/sampleBlocks*spot)
		for range sampleTries {
			block := s.block(from)
			if block.Length == 0 {
				break
			}
			from += int64(block.Length)
			text := memory[:block.Length]
			if _, err := f.part.ReadAt(text, int64(block.Offset)); err != nil {
				return nil
			}
			if bytes.Count(text, text[:1]) < len(text) {
				sample = append(sample, block)
				break
			}
		}
	}
	return sample
}

// block is the next block of what is there, after so many bytes of it.
func (s state) block(skip int64) ranges.Range {
	for _, r := range s.Written {
		if skip < r[1] {
			return ranges.Range{Offset: quantity.Bytes(r[0] + skip), Length: quantity.Bytes(min(sampleSize, r[1]-skip))}
		}
		skip -= r[1]
	}
	return ranges.Range{}
}

// compare returns an error if bytes of the sample that arrived differ from those
// that are there.
func (f *File) compare(p []byte, offset int64) error {
	for _, r := range f.sample {
		from, to := max(offset, int64(r.Offset)), min(offset+int64(len(p)), int64(r.End()))
		if from >= to {
			continue
		}
		there := make([]byte, to-from)
		if _, err := f.part.ReadAt(there, from); err != nil {
			return err
		}
		if !bytes.Equal(there, p[from-offset:to-offset]) {
			return fmt.Errorf("%s is of another file, though size, date and ETag are the same: give another name, or remove it", f.part.Name())
		}
	}
	return nil
}

// isSure reports whether all of the sample has come; f.mu is held, or nobody
// writes. Until then the state stays as it was.
func (f *File) isSure() bool { return f.unsure.First().Length == 0 }
