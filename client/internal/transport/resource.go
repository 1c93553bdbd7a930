package transport

import (
	"errors"
	"net/http"
	"strings"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Resource is what a URL stood for when the download began.
type Resource struct {
	// Size is the number of bytes; -1 if the server does not tell.
	Size quantity.Bytes
	// ETag is the strong validator; empty if the server gives none or only a
	// weak one, which does not promise equal bytes (RFC 9110 8.8.1).
	ETag string
	// LastModified is the date that the server gives, or empty. It is the
	// validator if there is no ETag.
	LastModified string
	// SHA256 is the checksum that the server states; nil if it states none.
	SHA256 []byte
	// Name is the file name that the server proposes, or empty.
	Name string
	// NoRanges says that the server does not serve ranges.
	NoRanges bool
	// IsPage says that it is a web page.
	IsPage bool
	// Verified says that a checksum proves the whole: validators are only a hint.
	Verified bool
	// Server is the address that told, if it is known.
	Server string
}

// HasValidator reports whether responses can be proven to be parts of the
// same resource.
func (r Resource) HasValidator() bool { return r.ETag != "" || r.LastModified != "" }

// isDated reports whether the date is all that proves it. Who has said nothing, as
// some servers do to HEAD alone, has not said that there is no date either.
func (r Resource) isDated() bool { return r.ETag == "" && r.LastModified != "" }

// newResource reads the header of a 200.
func newResource(response *http.Response) (Resource, error) {
	if err := checkCoding(response); err != nil {
		return Resource{}, err
	}
	return Resource{
		Size:         quantity.Bytes(response.ContentLength),
		ETag:         strongETag(response.Header),
		LastModified: response.Header.Get("Last-Modified"),
		SHA256:       reprDigest(response.Header),
		Name:         dispositionName(response.Header),
		NoRanges:     strings.EqualFold(response.Header.Get("Accept-Ranges"), "none"),
		IsPage:       IsPage(response.Header),
	}, nil
}

func strongETag(header http.Header) string {
	etag := header.Get("ETag")
	if strings.HasPrefix(etag, "W/") {
		return ""
	}
	return etag
}

// checkCoding refuses content codings: an encoded file is another one, with
// other ranges.
func checkCoding(response *http.Response) error {
	if coding := response.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return mismatch("the server encodes the file as %q, though it was asked not to", coding)
	}
	return nil
}

// CheckSame returns an error unless other is what the server said of the same
// resource.
func (r Resource) CheckSame(other Resource) error {
	err := r.checkSame(other)
	if mismatch := new(MismatchError); errors.As(err, &mismatch) {
		mismatch.Server = other.Server
	}
	return err
}

func (r Resource) checkSame(other Resource) error {
	switch {
	case other.Size != r.Size:
		return mismatch("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, other.Size)
	case r.Verified:
	case r.HasValidator() && other.ETag != r.ETag:
		return otherValidator("the file changed on the server during the download: its ETag was %s and is %s", r.ETag, other.ETag)
	case r.isDated() && other.LastModified != r.LastModified:
		return otherValidator("the file changed on the server during the download: it was modified on %q, now on %q", r.LastModified, other.LastModified)
	}
	return nil
}

// checkWhole returns an error unless the response carries all of the
// resource.
func (r Resource) checkWhole(response *http.Response) error {
	if response.StatusCode != http.StatusOK && !IsWhole(response) {
		return failure(response)
	}
	if err := checkCoding(response); err != nil {
		return err
	}
	if r.Size >= 0 && response.ContentLength >= 0 && quantity.Bytes(response.ContentLength) != r.Size {
		return mismatch("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, response.ContentLength)
	}
	return r.checkValidator(response)
}

func (r Resource) checkValidator(response *http.Response) error {
	switch {
	case r.Verified:
	case r.ETag != "" && strongETag(response.Header) != r.ETag:
		return otherValidator("the file changed on the server during the download: its ETag was %s and is %s", r.ETag, response.Header.Get("ETag"))
	case r.isDated() && response.Header.Get("Last-Modified") != r.LastModified:
		return otherValidator("the file changed on the server during the download: it was modified on %q, now on %q", r.LastModified, response.Header.Get("Last-Modified"))
	}
	return nil
}
