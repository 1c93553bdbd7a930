package proxy

import (
	"io"
	"net/http"
	"sync/atomic"
)

// requestBody is a client's body, which an origin may not read to its end.
type requestBody struct {
	io.ReadCloser
	ended atomic.Bool
}

type requestBodyKey struct{}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended.Store(true)
	}
	return n, err
}

// endEarly closes the connection to a client after an answer that comes before the end of the
// request. net/http cannot read another request from this connection, and panics
// (go.dev/issue/68560).
func endEarly(answer http.Header, request *http.Request) {
	body, ok := request.Context().Value(requestBodyKey{}).(*requestBody)
	if ok && !body.ended.Load() {
		answer.Set("Connection", "close")
	}
}
