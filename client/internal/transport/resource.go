package transport

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/linklab/linklab/client/internal/ranges"
)

// Resource is what a URL stood for when the download began.
type Resource struct {
	// Size is the number of bytes.
	Size int64
	// ETag is the strong validator; empty if the server gives none or only a
	// weak one, which does not promise equal bytes (RFC 9110, 8.8.1).
	ETag string
	// LastModified is the date that the server gives, or empty. It is the
	// validator if there is no ETag.
	LastModified string
}

// HasValidator reports whether responses can be proven to be parts of the
// same resource.
func (r Resource) HasValidator() bool { return r.ETag != "" || r.LastModified != "" }

func newResource(response *http.Response) (Resource, error) {
	switch {
	case response.StatusCode/100 == 3:
		return Resource{}, fmt.Errorf("the server redirects to %s: request that URL", response.Header.Get("Location"))
	case response.StatusCode != http.StatusOK:
		return Resource{}, fmt.Errorf("the server answers HEAD with %s", response.Status)
	case response.ContentLength < 0:
		return Resource{}, fmt.Errorf("the server does not tell the size of the file (no Content-Length)")
	case strings.EqualFold(response.Header.Get("Accept-Ranges"), "none"):
		return Resource{}, fmt.Errorf("the server does not serve ranges (Accept-Ranges: none)")
	}
	return Resource{
		Size:         response.ContentLength,
		ETag:         strongETag(response.Header),
		LastModified: response.Header.Get("Last-Modified"),
	}, nil
}

func strongETag(header http.Header) string {
	etag := header.Get("ETag")
	if strings.HasPrefix(etag, "W/") {
		return ""
	}
	return etag
}

// check returns an error unless the response carries exactly range r of the
// resource.
func (r Resource) check(response *http.Response, want ranges.Range) error {
	switch {
	case response.StatusCode == http.StatusOK:
		return fmt.Errorf("the server ignores Range and answers with the whole file (200): it does not serve ranges")
	case response.StatusCode != http.StatusPartialContent:
		return fmt.Errorf("the server answers %s", response.Status)
	case response.Header.Get("Content-Encoding") != "":
		return fmt.Errorf("the server encodes the range as %q", response.Header.Get("Content-Encoding"))
	}
	first, last, size, err := parseContentRange(response.Header.Get("Content-Range"))
	switch {
	case err != nil:
		return err
	case first != want.Offset || last != want.End()-1:
		return fmt.Errorf("the server answers with bytes %d-%d instead of %d-%d", first, last, want.Offset, want.End()-1)
	case size != r.Size:
		return fmt.Errorf("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, size)
	case response.ContentLength >= 0 && response.ContentLength != want.Length:
		return fmt.Errorf("the server announces %d bytes for a range of %d", response.ContentLength, want.Length)
	case r.ETag != "" && strongETag(response.Header) != r.ETag:
		return fmt.Errorf("the file changed on the server during the download: its ETag was %s and is %s", r.ETag, response.Header.Get("ETag"))
	case r.ETag == "" && response.Header.Get("Last-Modified") != r.LastModified:
		return fmt.Errorf("the file changed on the server during the download: it was modified on %q, now on %q", r.LastModified, response.Header.Get("Last-Modified"))
	}
	return nil
}

// parseContentRange reads "bytes FIRST-LAST/SIZE" (RFC 9110, 14.4).
func parseContentRange(value string) (first, last, size int64, err error) {
	wrong := fmt.Errorf("the server sends Content-Range %q: allowed is bytes FIRST-LAST/SIZE", value)
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
		into *int64
	}{{from, &first}, {to, &last}, {total, &size}} {
		n, err := strconv.ParseUint(field.text, 10, 63)
		if err != nil {
			return 0, 0, 0, wrong
		}
		*field.into = int64(n)
	}
	if first > last || last >= size {
		return 0, 0, 0, wrong
	}
	return first, last, size, nil
}
