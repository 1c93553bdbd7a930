package transport

import (
	"context"
	"io"
	"net/http"

	"github.com/linklab/linklab/client/internal/quantity"
)

// mostAnswer is how much of an answer's body Exchange reads.
const mostAnswer = 64 << 10

// Question is a request that has a short answer.
type Question struct {
	Method string
	Target Target
	// Fields are added to the target's header.
	Fields map[string]string
	// Body has Size bytes; it is nil if there are none.
	Body io.Reader
	Size quantity.Bytes
}

// Answer is what the server says.
type Answer struct {
	Code   int
	Status string
	Header http.Header
	// Size is the length that the server announces; -1 if it announces none.
	Size quantity.Bytes
	// Body is the beginning of the body.
	Body []byte
}

// IsSuccess reports whether the server did what was asked.
func (a Answer) IsSuccess() bool { return a.Code >= 200 && a.Code < 300 }

// Exchange sends a request of any method, and reads the answer. It follows no redirect.
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
	q.Target.learn(response)
	defer response.Body.Close()
	answer := Answer{
		Code: response.StatusCode, Status: response.Status, Header: response.Header,
		Size: quantity.Bytes(response.ContentLength),
	}
	if q.Method == http.MethodGet || response.ContentLength >= 0 {
		// A body of unknown length that nobody wants may never end: lighttpd's to OPTIONS.
		answer.Body, err = io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	}
	return answer, err
}
