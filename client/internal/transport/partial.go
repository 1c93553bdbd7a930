package transport

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

const (
	// mostSurplus limits how many bytes before the wanted ones an answer may bring.
	mostSurplus = 1 << 20
	// leastPiece is the smallest part of a range that an answer may bring: each further part
	// takes a round trip.
	leastPiece = 16 << 10
)

// Partial returns the resource of a 206 and the range that it brings, if the resource was
// unknown before.
func Partial(response *http.Response) (Resource, ranges.Range, error) {
	part, size, err := parseContentRange(response.Header.Get("Content-Range"))
	if err == nil && size < 0 {
		err = doesNotSuit("the server does not tell the size of the file (Content-Range %q)", response.Header.Get("Content-Range"))
	}
	if err != nil {
		return Resource{}, ranges.Range{}, err
	}
	return newResource(response, size), part, nil
}

// Body returns the response's body if the header proves that it is the wanted range of the
// resource. A read fails if the body is shorter or longer.
func (r Resource) Body(response *http.Response, want ranges.Range) (io.ReadCloser, error) {
	body, part, err := r.part(response, want)
	if err == nil && part != want {
		err = doesNotSuit("the server answers with %d bytes instead of %d", part.Length, want.Length)
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

// part returns the body and range that a response brings of the wanted range, from its
// first byte on. The header must prove which bytes these are.
func (r Resource) part(response *http.Response, want ranges.Range) (io.ReadCloser, ranges.Range, error) {
	switch response.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		if err := r.checkWhole(response); err != nil {
			return nil, ranges.Range{}, err
		}
		return nil, ranges.Range{}, ErrNoRanges
	case http.StatusRequestedRangeNotSatisfiable:
		said := response.Header.Get("Content-Range")
		if size, err := strconv.ParseUint(strings.TrimPrefix(said, "bytes */"), 10, 63); err == nil && quantity.Bytes(size) != r.Size {
			return nil, ranges.Range{}, mismatch("the file changed on the server during the download: it has no bytes %d-%d any more (416, Content-Range %q)",
				want.Offset, want.End()-1, said)
		}
		return nil, ranges.Range{}, doesNotSuit("the server says that there are no bytes %d-%d (416, Content-Range %q)", want.Offset, want.End()-1, said)
	case http.StatusPreconditionFailed:
		return nil, ranges.Range{}, mismatch("the file changed on the server during the download (412)")
	default:
		return nil, ranges.Range{}, failure(response)
	}
	if err := r.checkCoding(codingOf(response.Header)); err != nil {
		return nil, ranges.Range{}, err
	}
	from, came, size, err := r.bodyRange(response)
	if err == nil && size >= 0 && size != r.Size {
		err = mismatch("the file changed on the server during the download: its size was %d and is %d bytes", r.Size, size)
	}
	if err == nil {
		err = r.checkValidator(response)
	}
	if err != nil {
		return nil, ranges.Range{}, err
	}
	part := ranges.Range{Offset: want.Offset, Length: min(came.End(), want.End()) - want.Offset}
	surplus := want.Offset - came.Offset
	switch {
	case came == want:
		return &exactBody{from, want.Length}, want, nil
	case came.End() > r.Size:
		return nil, ranges.Range{}, doesNotSuit("the server answers with bytes %d-%d of %d", came.Offset, came.End()-1, r.Size)
	case came.Length == r.Size:
		return nil, ranges.Range{}, ErrNoRanges // A 206 with the whole file.
	case surplus < 0, surplus > mostSurplus, part.Length <= 0, part.Length < min(leastPiece, want.Length):
		return nil, ranges.Range{}, doesNotSuit("the server answers with bytes %d-%d instead of %d-%d", came.Offset, came.End()-1, want.Offset, want.End()-1)
	}
	return &middleBody{ReadCloser: &exactBody{from, came.Length}, skip: surplus, left: part.Length}, part, nil
}

// bodyRange returns which bytes a 206 brings, and the size of the file; -1 if unknown.
func (r Resource) bodyRange(response *http.Response) (body io.ReadCloser, came ranges.Range, size quantity.Bytes, err error) {
	said := response.Header.Get("Content-Range")
	if said != "" {
		came, size, err = parseContentRange(said)
		if err == nil && size < 0 && !r.HasValidator() && !r.Verified {
			err = doesNotSuit("the server does not tell the size of the file (Content-Range %q), and gives no validator", said)
		}
		if err == nil && response.ContentLength >= 0 && quantity.Bytes(response.ContentLength) != came.Length {
			err = doesNotSuit("the server announces %d bytes for a range of %d", response.ContentLength, came.Length)
		}
		return response.Body, came, size, err
	}
	// ParseMediaType makes a map, and for maps Go draws a random number. A correct answer
	// must not get here (see RangeHeader).
	kind, parameters, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case kind == "multipart/byteranges" && parameters["boundary"] != "":
		// This is the answer to several ranges. For one range it holds one part (RFC 9110 14.6).
		first, err := multipart.NewReader(response.Body, parameters["boundary"]).NextRawPart()
		if err != nil {
			return nil, came, 0, fmt.Errorf("the first part of multipart/byteranges: %w", err)
		}
		came, size, err = parseContentRange(first.Header.Get("Content-Range"))
		return struct {
			io.Reader
			io.Closer
		}{first, response.Body}, came, size, err
	case response.ContentLength >= 0 && quantity.Bytes(response.ContentLength) == r.Size:
		return response.Body, ranges.Range{Length: r.Size}, r.Size, nil
	}
	return nil, came, 0, doesNotSuit("the server answers with 206 and says not which bytes (no Content-Range)")
}

// Complete returns the resource of an answer to GET that brings the whole file with its size.
func Complete(response *http.Response) (r Resource, ok bool) {
	if response.StatusCode != http.StatusOK || response.Request.Method != http.MethodGet || response.ContentLength <= 0 {
		return Resource{}, false
	}
	return newResource(response, quantity.Bytes(response.ContentLength)), true
}

// servesRanges reports whether an answer says that the server serves ranges.
func servesRanges(header http.Header) bool {
	return strings.EqualFold(header.Get("Accept-Ranges"), "bytes")
}

// IsWhole reports whether a 206 brings the whole resource: its Content-Range covers everything,
// or it has none and no range was requested.
func IsWhole(response *http.Response) bool {
	if response.StatusCode != http.StatusPartialContent || response.Request.Header.Get("Range") != "" {
		return false
	}
	said := response.Header.Get("Content-Range")
	part, size, err := parseContentRange(said)
	return said == "" && !strings.HasPrefix(response.Header.Get("Content-Type"), "multipart/") || err == nil && part == ranges.Range{Length: size}
}

// RangeHeader returns the Range value that requests r.
func RangeHeader(r ranges.Range) string {
	if r.Length == ranges.ToEnd {
		return fmt.Sprintf("bytes=%d-", int64(r.Offset))
	}
	// The conversions keep fmt from looking up methods of a named type: Go may draw a random
	// number for that. The runtime's scheduler would then continue with the next random
	// number, which changed runs in virtual time.
	return fmt.Sprintf("bytes=%d-%d", int64(r.Offset), int64(r.End()-1))
}

// parseContentRange reads "bytes FIRST-LAST/SIZE" (RFC 9110 14.4). It returns size -1 for *.
func parseContentRange(value string) (part ranges.Range, size quantity.Bytes, err error) {
	wrong := doesNotSuit("the server sends Content-Range %q: allowed is bytes FIRST-LAST/SIZE", value)
	unit, rest, _ := strings.Cut(value, " ")
	span, total, isTotal := strings.Cut(rest, "/")
	from, to, isSpan := strings.Cut(span, "-")
	if !strings.EqualFold(unit, "bytes") || !isTotal || !isSpan {
		return ranges.Range{}, 0, wrong
	}
	first, firstErr := strconv.ParseUint(from, 10, 62)
	last, lastErr := strconv.ParseUint(to, 10, 62)
	if firstErr != nil || lastErr != nil || first > last {
		return ranges.Range{}, 0, wrong
	}
	part = ranges.Range{Offset: quantity.Bytes(first), Length: quantity.Bytes(last - first + 1)}
	if total == "*" {
		return part, -1, nil
	}
	all, err := strconv.ParseUint(total, 10, 63)
	if err != nil || last >= all {
		return ranges.Range{}, 0, wrong
	}
	return part, quantity.Bytes(all), nil
}

// middleBody is the middle part of a body.
type middleBody struct {
	io.ReadCloser
	// skip counts the unwanted bytes before that part, and left the bytes in it.
	skip, left quantity.Bytes
}

func (b *middleBody) Read(p []byte) (int, error) {
	if b.skip > 0 {
		n, err := io.CopyN(io.Discard, b.ReadCloser, int64(b.skip))
		if b.skip -= quantity.Bytes(n); err != nil {
			return 0, err
		}
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(quantity.Bytes(len(p)), b.left)])
	b.left -= quantity.Bytes(n)
	return n, err
}

// pieceBody is the body of a range that the server sends in several answers.
type pieceBody struct {
	io.ReadCloser
	// part is what the present answer still brings. rest is what later answers must bring.
	part, rest ranges.Range
	next       func(ranges.Range) (io.ReadCloser, ranges.Range, error)
}

func (b *pieceBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.part.Length -= quantity.Bytes(n)
	if err != io.EOF && (err != nil || b.part.Length > 0) || b.rest.Length == 0 {
		return n, err
	}
	if b.part.Length > 0 {
		return n, io.ErrUnexpectedEOF
	}
	b.Close()
	if b.ReadCloser, b.part, err = b.next(b.rest); err != nil {
		b.ReadCloser = io.NopCloser(strings.NewReader(""))
		return n, err
	}
	b.rest.Offset, b.rest.Length = b.part.End(), b.rest.End()-b.part.End()
	return n, nil
}
