package transport

import (
	"fmt"
	"io"
	"net/http"

	"github.com/linklab/linklab/client/internal/ranges"
)

// Partial tells of which resource and what part a 206 is, for who did not
// know the resource before.
func Partial(response *http.Response) (Resource, ranges.Range, error) {
	if err := checkCoding(response); err != nil {
		return Resource{}, ranges.Range{}, err
	}
	first, last, size, err := parseContentRange(response.Header.Get("Content-Range"))
	if err != nil {
		return Resource{}, ranges.Range{}, err
	}
	resource := Resource{
		Size:         size,
		ETag:         strongETag(response.Header),
		LastModified: response.Header.Get("Last-Modified"),
		SHA256:       reprDigest(response.Header),
		Name:         dispositionName(response.Header),
		IsPage:       IsPage(response.Header),
	}
	return resource, ranges.Range{Offset: first, Length: last - first + 1}, nil
}

// Body returns the response's body once the header proves that it is the
// range of the resource. The body fails if it is shorter or longer.
func (r Resource) Body(response *http.Response, want ranges.Range) (io.ReadCloser, error) {
	if err := r.check(response, want); err != nil {
		return nil, err
	}
	return &exactBody{response.Body, want.Length}, nil
}

// RangeHeader is the value of Range that requests r.
func RangeHeader(r ranges.Range) string {
	// fmt asks a named type for its methods, for which Go may draw a random
	// number. Its scheduler would go on with the next one: seen in virtual time.
	return fmt.Sprintf("bytes=%d-%d", int64(r.Offset), int64(r.End()-1))
}
