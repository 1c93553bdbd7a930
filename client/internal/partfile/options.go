package partfile

import (
	"encoding/hex"

	"github.com/linklab/linklab/client/internal/transport"
)

// Options describes the file to write.
type Options struct {
	Name string
	// Checksum is the SHA-256 that the file must have, nil if unknown.
	Checksum []byte
	// Resume keeps the part if the download fails, and continues the part that an earlier
	// download from URL has left.
	Resume bool
	URL    string
}

// canResume reports whether another download could prove that it has the resource.
func (o *Options) canResume(r transport.Resource) bool {
	verified := o.Checksum != nil || r.SHA256 != nil
	return o.Resume && r.Size > 0 && !r.NoRanges && (verified || r.HasValidator())
}

// fits reports whether the state belongs to the resource. An equal checksum is enough, because
// it is compared at the end.
func (o *Options) fits(s state, r transport.Resource) bool {
	switch {
	case !o.canResume(r), s.Size != int64(r.Size), s.proven() == 0:
		return false
	case o.isChecksum(s):
		return true
	}
	return s.ETag == r.ETag && s.LastModified == r.LastModified && s.URL == o.URL
}

// isChecksum reports whether the state has the same checksum.
func (o *Options) isChecksum(s state) bool {
	return o.Checksum != nil && s.Checksum == hex.EncodeToString(o.Checksum)
}
