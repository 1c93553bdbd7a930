package transport

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"github.com/linklab/linklab/client/internal/printable"
)

// Target is a URL with the header to send.
type Target struct {
	URL    *url.URL
	Header http.Header
	// Bare omits the fields that no server needs. The published results were measured
	// without these fields, and only so they repeat to the byte.
	Bare bool
	// IsFile is true if a web page cannot be the right answer.
	IsFile bool
}

// complete adds the header of the target.
func (t Target) complete(request *http.Request) {
	maps.Copy(request.Header, t.Header)
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host // net/http ignores Host in the header.
		request.Header.Del("Host")
	}
}

func (c *Conn) do(ctx context.Context, method string, t Target, fields map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, t.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	t.complete(request)
	if !t.Bare {
		// Without this field the server may use any coding (RFC 9110 12.5.3).
		request.Header.Set("Accept-Encoding", "identity")
	}
	for name, value := range fields {
		request.Header.Set(name, value)
	}
	response, err := c.send(request)
	if err != nil {
		return nil, err
	}
	c.hellos.Heard(request.URL, response.Header)
	readRefusal(response)
	if err := t.checkPortal(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

func (c *Conn) send(request *http.Request) (*http.Response, error) {
	body := &readBody{conn: c}
	switch {
	case c.ask != nil && c.backlog == nil: // HTTP/3.
		body.server = c.Socket.RemoteAddr()
	case c.backlog == nil:
		// HTTP/1.1 has several connections. One of them gets the request.
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { body.by, body.server = got.Conn, got.Conn.RemoteAddr() },
		}))
	default:
		body.server = c.Socket.RemoteAddr()
		body.reader = &reader{backlog: c.backlog}
		// WroteHeaders is called before any other request is sent.
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
			WroteHeaders: func() { body.reader.sent(c.saver.newest) },
		}))
	}
	response, err := Paced(explaining{c}, request, c.Socket.Trial(), trialOf, true)
	if err != nil {
		if body.reader != nil {
			body.reader.leave()
		}
		return nil, printable.Error(err)
	}
	body.ReadCloser, response.Body = response.Body, body
	return response, nil
}

// explaining sends requests whose errors tell why their connection ended.
type explaining struct{ *Conn }

func (e explaining) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.http.RoundTrip(request)
	return response, e.explained(err)
}

// mostRefusal limits how much of a refusal is read, in bytes, to use its HTTP/1.1 connection
// again.
const mostRefusal = 4 << 10

// readRefusal reads a short refusal to its end. Otherwise net/http closes the HTTP/1.1 connection.
func readRefusal(response *http.Response) {
	if isReusable(response) {
		io.CopyN(io.Discard, response.Body, response.ContentLength)
	}
}

// isReusable reports whether a refusal's connection can be used again once it is read.
func isReusable(response *http.Response) bool {
	few := response.ContentLength >= 0 && response.ContentLength <= mostRefusal
	return response.ProtoMajor == 1 && !response.Close && response.StatusCode >= http.StatusBadRequest && few
}

// serverOf returns the address of the server that sent a response.
func serverOf(response *http.Response) string {
	if body, ok := response.Body.(*readBody); ok && body.server != nil {
		return body.server.String()
	}
	return ""
}

// from adds the address of the server to a MismatchError.
func from(response *http.Response, err error) error {
	if mismatch := new(MismatchError); errors.As(err, &mismatch) {
		mismatch.Server = serverOf(response)
	}
	return err
}
