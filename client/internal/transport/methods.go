package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

// Head requests the resource of the target by HEAD.
func (c *Conn) Head(ctx context.Context, t Target) (Resource, error) {
	response, err := c.do(ctx, http.MethodHead, t, wantDigest(t))
	if err != nil {
		return Resource{}, err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Resource{}, failure(response)
	}
	resource := wholeResource(response)
	resource.Server = serverOf(response)
	return resource, nil
}

// Peek requests the resource of the target by GET, for servers that do not answer HEAD.
func (c *Conn) Peek(ctx context.Context, t Target) (Resource, error) {
	fields := wantDigest(t)
	fields["Range"] = "bytes=0-0"
	response, err := c.do(ctx, http.MethodGet, t, fields)
	if err == nil && RefusesRanges(response.StatusCode) {
		// An empty file has no first byte, and some servers serve no ranges.
		response.Body.Close()
		response, err = c.do(ctx, http.MethodGet, t, wantDigest(t))
	}
	if err != nil {
		return Resource{}, err
	}
	if response.StatusCode == http.StatusPartialContent {
		_, _ = io.CopyN(io.Discard, response.Body, 2) // So that the connection can be used again.
	}
	response.Body.Close()
	switch {
	case response.StatusCode == http.StatusPartialContent:
		resource, _, err := Partial(response)
		if errors.Is(err, ErrNoRanges) {
			resource, err = newResource(response, -1), nil
			resource.NoRanges = true
		}
		return resource, err
	case response.StatusCode == http.StatusOK, IsWhole(response):
		resource := wholeResource(response)
		resource.NoRanges = resource.Size != 0
		return resource, nil
	}
	return Resource{}, failure(response)
}

// wantDigest returns the fields that request the checksum of the whole file.
func wantDigest(t Target) map[string]string {
	if t.Bare {
		return map[string]string{}
	}
	return map[string]string{"Want-Repr-Digest": "sha-256=5"}
}

// Begin requests a range of a target of which nothing is known. It returns the resource and
// the body: as much of the range as the file has. If the server serves no ranges, the body is a
// *WholeBody.
func (c *Conn) Begin(ctx context.Context, t Target, part ranges.Range) (Resource, io.ReadCloser, error) {
	fields := wantDigest(t)
	fields["Range"] = RangeHeader(part)
	response, err := c.do(ctx, http.MethodGet, t, fields)
	if err != nil {
		return Resource{}, nil, err
	}
	resource := Resource{}
	switch response.StatusCode {
	case http.StatusPartialContent:
		resource, _, err = Partial(response)
		resource.Server = serverOf(response)
	case http.StatusOK:
		if resource = wholeResource(response); !servesRanges(response.Header) {
			resource.Server, resource.NoRanges = serverOf(response), true
			return resource, newWholeBody(response, resource.Size), nil
		}
		if all := (ranges.Range{Length: ranges.ToEnd}); part == all && resource.Size >= 0 {
			// The server serves ranges, and answers the one of the whole file with 200.
			resource.Server = serverOf(response)
			return resource, &exactBody{response.Body, resource.Size}, nil
		}
		err = ErrNoRanges
	default:
		err = failure(response)
	}
	if err == nil {
		part.Length = min(part.Length, resource.Size-part.Offset)
		var body io.ReadCloser
		if body, err = c.all(ctx, t, resource, part, response); err == nil {
			return resource, body, nil
		}
	}
	response.Body.Close()
	return Resource{}, nil, err
}

// Get requests a range of the resource. It returns the body once the header proves that it is
// the right one. If the server sends less, the body requests the rest. A read fails if the
// body is shorter or longer than the range.
func (c *Conn) Get(ctx context.Context, t Target, resource Resource, r ranges.Range) (io.ReadCloser, error) {
	response, err := c.get(ctx, t, resource, r)
	if err != nil {
		return nil, err
	}
	return c.all(ctx, t, resource, r, response)
}

// all returns the body of a range of which the response brings the first bytes. On failure it
// closes the response.
func (c *Conn) all(ctx context.Context, t Target, resource Resource, r ranges.Range, response *http.Response) (io.ReadCloser, error) {
	body, part, err := resource.part(response, r)
	if err != nil {
		response.Body.Close()
		return nil, from(response, err)
	}
	if part == r {
		return body, nil
	}
	rest := ranges.Range{Offset: part.End(), Length: r.End() - part.End()}
	return &pieceBody{body, part, rest, func(rest ranges.Range) (io.ReadCloser, ranges.Range, error) {
		response, err := c.get(ctx, t, resource, rest)
		if err != nil {
			return nil, ranges.Range{}, err
		}
		body, part, err := resource.part(response, rest)
		if err != nil {
			response.Body.Close()
			return nil, ranges.Range{}, from(response, err)
		}
		return body, part, nil
	}}, nil
}

// get requests a range, on condition that the file is unchanged. Some servers answer this
// condition with the whole file even if it is unchanged. They get no condition any more.
func (c *Conn) get(ctx context.Context, t Target, resource Resource, r ranges.Range) (*http.Response, error) {
	fields := map[string]string{"Range": RangeHeader(r)}
	if resource.ETag == "" || t.Bare || c.unconditional.Load() {
		return c.do(ctx, http.MethodGet, t, fields)
	}
	fields["If-Range"] = resource.ETag
	response, err := c.do(ctx, http.MethodGet, t, fields)
	if err != nil || response.StatusCode != http.StatusOK || resource.checkWhole(response) != nil {
		return response, err
	}
	response.Body.Close()
	c.unconditional.Store(true)
	delete(fields, "If-Range")
	if response, err = c.do(ctx, http.MethodGet, t, fields); errors.As(err, new(*link.PacedError)) {
		// The unread answer has closed its connection, and counts as its failure.
		return nil, ErrNoRanges
	}
	return response, err
}

// Whole requests the whole resource without a range. Its size may be unknown.
func (c *Conn) Whole(ctx context.Context, t Target, resource Resource) (*WholeBody, error) {
	response, err := c.do(ctx, http.MethodGet, t, nil)
	if err != nil {
		return nil, err
	}
	if err := resource.checkWhole(response); err != nil {
		response.Body.Close()
		return nil, from(response, err)
	}
	return newWholeBody(response, resource.Size), nil
}

// exactBody is a body that must have a known length.
type exactBody struct {
	io.ReadCloser
	left quantity.Bytes
}

func (b *exactBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= quantity.Bytes(n)
	switch {
	case b.left < 0:
		return 0, ErrTooLong
	case err == io.EOF && b.left > 0:
		return n, fmt.Errorf("the response ended %d bytes before the end of the requested range", int64(b.left))
	}
	return n, err
}

// Put sends a body as a part of the target, whose whole size is given (RFC 9110 14.5). An
// empty part means the whole. With asks, the server is asked first whether it takes the body
// (Expect, RFC 9110 10.1.1). It returns the status of the answer as a code and as text. The
// body of the answer is dropped. A redirect that keeps the method is a RedirectError.
func (c *Conn) Put(ctx context.Context, t Target, body io.Reader, part ranges.Range, size quantity.Bytes, asks bool) (code int, status string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, t.URL.String(), body)
	if err != nil {
		return 0, "", err
	}
	t.complete(request)
	request.ContentLength = int64(size)
	if part.Length > 0 {
		request.ContentLength = int64(part.Length)
		request.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", int64(part.Offset), int64(part.End()-1), int64(size)))
	}
	if asks {
		request.Header.Set("Expect", "100-continue")
	}
	response, err := c.send(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	if code := response.StatusCode; code == http.StatusTemporaryRedirect || code == http.StatusPermanentRedirect {
		if err := failure(response); errors.As(err, new(*RedirectError)) {
			return code, response.Status, err
		}
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if response.StatusCode >= http.StatusBadRequest {
		err = nil // The connection may break behind an early refusal.
	}
	return response.StatusCode, response.Status, err
}
