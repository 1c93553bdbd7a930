package partfile

import (
	"bytes"
	"fmt"
	"os"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
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

// sample holds the ranges of a part that are compared with the bytes that arrive.
type sample []ranges.Range

// continueWith prepares to continue the part, whose state fits, and returns its ranges. It returns nil
// if no sample could prove the part.
func (f *File) continueWith(s state) []ranges.Range {
	have := ranges.NewSet(s.ranges()...)
	if s.URL != f.URL && !f.isChecksum(s) {
		f.sample = sampled(f.part.file, s)
		if len(f.sample) == 0 {
			return nil
		}
		for _, r := range f.sample {
			have.Remove(r)
			f.record.unproven.Add(r)
		}
	}
	f.earlier = s
	return have.Ranges()
}

// sampled chooses blocks across the written ranges.
func sampled(part *os.File, s state) (chosen sample) {
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
			if _, err := part.ReadAt(text, int64(block.Offset)); err != nil {
				return nil
			}
			if bytes.Count(text, text[:1]) < len(text) {
				chosen = append(chosen, block)
				break
			}
		}
	}
	return chosen
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
func (s sample) compare(part *os.File, p []byte, offset int64) error {
	for _, r := range s {
		from, to := max(offset, int64(r.Offset)), min(offset+int64(len(p)), int64(r.End()))
		if from >= to {
			continue
		}
		there := make([]byte, to-from)
		if _, err := part.ReadAt(there, from); err != nil {
			return err
		}
		if !bytes.Equal(there, p[from-offset:to-offset]) {
			return fmt.Errorf("%s is of another file, though size, date and ETag are the same: give another name, or remove it", part.Name())
		}
	}
	return nil
}
