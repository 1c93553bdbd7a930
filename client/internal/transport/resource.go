package transport

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
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

// check returns an error unless the response carries exactly range r of the
// resource.
func (r Resource) check(response *http.Response, want ranges.Range) error {
	switch response.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		if err := r.checkWhole(response); err != nil {
			return err
		}
		return ErrNoRanges
	case http.StatusRequestedRangeNotSatisfiable:
		return mismatch("the file changed on the server during the download: it has no bytes %d-%d any more (416, Content-Range %q)",
			want.Offset, want.End()-1, response.Header.Get("Content-Range"))
	case http.StatusPreconditionFailed:
		return mismatch("the file changed on the server during the download (412)")
	default:
		return failure(response)
	}
	if err := checkCoding(response); err != nil {
		return err
	}
	first, last, size, err := parseContentRange(response.Header.Get("Content-Range"))
	switch {
	case err != nil:
		return err
	case first != want.Offset || last != want.End()-1:
		return mismatch("the server answers with bytes %d-%d instead of %d-%d", first, last, want.Offset, want.End()-1)
	case size != r.Size:
		return mismatch("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, size)
	case response.ContentLength >= 0 && quantity.Bytes(response.ContentLength) != want.Length:
		return mismatch("the server announces %d bytes for a range of %d", response.ContentLength, want.Length)
	}
	return r.checkValidator(response)
}

// CheckSame returns an error unless other is what the server said of the same
// resource.
func (r Resource) CheckSame(other Resource) error {
	switch {
	case other.Size != r.Size:
		return mismatch("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, other.Size)
	case r.HasValidator() && other.ETag != r.ETag:
		return mismatch("the file changed on the server during the download: its ETag was %s and is %s", r.ETag, other.ETag)
	case r.isDated() && other.LastModified != r.LastModified:
		return mismatch("the file changed on the server during the download: it was modified on %q, now on %q", r.LastModified, other.LastModified)
	}
	return nil
}

// checkWhole returns an error unless the response carries all of the
// resource.
func (r Resource) checkWhole(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
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
	case r.ETag != "" && strongETag(response.Header) != r.ETag:
		return mismatch("the file changed on the server during the download: its ETag was %s and is %s", r.ETag, response.Header.Get("ETag"))
	case r.isDated() && response.Header.Get("Last-Modified") != r.LastModified:
		return mismatch("the file changed on the server during the download: it was modified on %q, now on %q", r.LastModified, response.Header.Get("Last-Modified"))
	}
	return nil
}

// parseContentRange reads "bytes FIRST-LAST/SIZE" (RFC 9110 14.4).
func parseContentRange(value string) (first, last, size quantity.Bytes, err error) {
	wrong := mismatch("the server sends Content-Range %q: allowed is bytes FIRST-LAST/SIZE", value)
	unit, rest, ok := strings.Cut(value, " ")
	if !ok || unit != "bytes" {
		return 0, 0, 0, wrong
	}
	span, total, ok := strings.Cut(rest, "/")
	if !ok {
		return 0, 0, 0, wrong
	}
	from, to, ok := strings.Cut(span, "-")
	if !ok {
		return 0, 0, 0, wrong
	}
	for _, field := range []struct {
		text string
		into *quantity.Bytes
	}{{from, &first}, {to, &last}, {total, &size}} {
		n, err := strconv.ParseUint(field.text, 10, 63)
		if err != nil {
			return 0, 0, 0, wrong
		}
		*field.into = quantity.Bytes(n)
	}
	if first > last || last >= size {
		return 0, 0, 0, wrong
	}
	return first, last, size, nil
}
