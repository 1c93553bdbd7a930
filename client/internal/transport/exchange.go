package transport

import (
	"context"
	"io"
	"net/http"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

// mostAnswer limits how much of a body Exchange reads, in bytes.
const mostAnswer = 64 << 10

// Question is a request with a short answer.
type Question struct {
	Method string
	Target Target
	// Fields are added to the header of Target.
	Fields map[string]string
	// Body has Size bytes, nil for no body.
	Body io.Reader
	Size quantity.Bytes
}

// Answer is the response to a Question.
type Answer struct {
	Code   int
	Status string
	Header http.Header
	// Size is the announced length, -1 if unknown.
	Size quantity.Bytes
	// Body is the beginning of the body, at most mostAnswer bytes.
	Body []byte
}

// Part returns the range of a file that the answer is about, and the file's size, -1 if unknown. It
// fails if the answer is not about a file, or does not tell. The body may bring less of the range.
func (a Answer) Part() (part ranges.Range, size quantity.Bytes, err error) {
	if coding := codingOf(a.Header); coding != "" {
		return ranges.Range{}, 0, doesNotSuit("the server encodes the file as %q, though it was asked not to", coding)
	}
	switch a.Code {
	case http.StatusPartialContent:
		return parseContentRange(a.Header.Get("Content-Range"))
	case http.StatusOK:
		return ranges.Range{Length: a.Size}, a.Size, nil
	}
	return ranges.Range{}, 0, doesNotSuit("the server answers %q", a.Status)
}

// IsSuccess reports whether the status is 2xx.
func (a Answer) IsSuccess() bool { return a.Code >= 200 && a.Code < 300 }

// Exchange sends a request with any method and reads the answer. It follows no redirect.
func (c *Conn) Exchange(ctx context.Context, q Question) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, q.Method, q.Target.URL.String(), q.Body)
	if err != nil {
		return Answer{}, err
	}
	q.Target.complete(request)
	request.ContentLength = int64(q.Size)
	request.Header.Set("Accept-Encoding", "identity")
	for name, value := range q.Fields {
		request.Header.Set(name, value)
	}
	response, err := c.send(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	answer := Answer{
		Code: response.StatusCode, Status: response.Status, Header: response.Header,
		Size: quantity.Bytes(response.ContentLength),
	}
	if q.Method == http.MethodGet || response.ContentLength >= 0 {
		// Other bodies of unknown length may never end, such as lighttpd's to OPTIONS.
		answer.Body, err = io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	}
	return answer, err
}
