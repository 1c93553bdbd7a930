package partfile

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// Two files may have the same size, date and ETag, because many servers make the ETag from date
// and size. For another URL that proves too little. So a sample of the part is downloaded again
// and compared. A block of equal bytes proves nothing. sampleTries limits how many such blocks
// are read for each block of the sample.
const (
	sampleBlocks = 4
	sampleSize   = 16 << 10
	sampleTries  = 64
)

// fits reports whether the state belongs to the resource. An equal checksum is enough, because
// it is compared at the end.
func (f *File) fits(s state, r transport.Resource) bool {
	switch {
	case !f.canResume(r), s.Size != int64(r.Size), s.proven() == 0:
		return false
	case f.isChecksum(s):
		return true
	}
	return s.ETag == r.ETag && s.LastModified == r.LastModified && (s.URL == f.URL || r.HasValidator())
}

// isChecksum reports whether the state has the same checksum.
func (f *File) isChecksum(s state) bool {
	return f.Checksum != nil && s.Checksum == hex.EncodeToString(f.Checksum)
}

// continueWith prepares to continue the part, whose state fits, and returns its ranges. It returns nil
// if no sample could prove the part.
func (f *File) continueWith(s state) []ranges.Range {
	have := ranges.NewSet(s.ranges()...)
	if s.URL != f.URL && !f.isChecksum(s) {
		f.sample = f.sampled(s)
		if len(f.sample) == 0 {
			return nil
		}
		for _, r := range f.sample {
			have.Remove(r)
			f.unproven.Add(r)
		}
	}
	f.earlier = s
	return have.Ranges()
}

// sampled chooses blocks across the written ranges.
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

// block returns the block after skip bytes of the written ranges.
func (s state) block(skip int64) ranges.Range {
	for _, r := range s.Written {
		if skip < r[1] {
			return ranges.Range{Offset: quantity.Bytes(r[0] + skip), Length: quantity.Bytes(min(sampleSize, r[1]-skip))}
		}
		skip -= r[1]
	}
	return ranges.Range{}
}

// compare returns an error if arriving bytes of the sample differ from the part.
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

// isSampleProven reports whether the whole sample has arrived; f.mu is held, or nothing is written.
// Until then the state stays as it was.
func (f *File) isSampleProven() bool { return f.unproven.First().Length == 0 }
