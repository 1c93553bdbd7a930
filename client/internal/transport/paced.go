package transport

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
)

// useful is how many bytes of a body prove that a connection is of use, in bytes; an
// answer that has come to its end does, too.
const useful = 16 << 10

var errUnread = errors.New("the server answers with what was not asked for")

// result is to be told what becomes of a request.
type result interface {
	Prove()
	Fail(error)
}

// Paced sends a request, and lets the pace at which its server is connected to follow
// from what becomes of it. It goes over the connection on, or, if that is nil, over
// those of which trialOf tells. Who is strict does not take a failure of the server,
// or what is not read, for an answer.
func Paced(by http.RoundTripper, request *http.Request, on *link.Trial, trialOf func(net.Conn) *link.Trial, strict bool) (*http.Response, error) {
	var told result = on
	sent := request
	if on == nil {
		ctx, attempt := link.WithAttempt(withFewInterim(request.Context()))
		told = attempt
		sent = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { attempt.Uses(trialOf(got.Conn)) },
		}))
	}
	response, err := by.RoundTrip(sent)
	switch {
	case err != nil:
		if request.Context().Err() == nil {
			told.Fail(printable.Error(err))
		}
		return nil, err
	case strict && isFailure(response) && isKept(response):
		// The next request needs no other connection.
	case strict && isFailure(response):
		told.Fail(failure(response))
	case response.StatusCode == http.StatusSwitchingProtocols, response.ContentLength == 0, request.Method == http.MethodHead:
		told.Prove()
	default:
		response.Body = &pacedBody{ReadCloser: response.Body, of: request, result: told, left: response.ContentLength, strict: strict}
	}
	return response, nil
}

// isFailure reports whether a server says that it fails. That it cannot do what it was
// asked for, such as a ranged PUT, is an answer.
func isFailure(response *http.Response) bool {
	return response.StatusCode >= http.StatusInternalServerError && response.StatusCode != http.StatusNotImplemented
}

// pacedBody is a body that proves its connection, or not. It may be closed while it is
// read.
type pacedBody struct {
	io.ReadCloser
	of     *http.Request
	result result
	// came is how much has come, and left how much is to; below 0 if that is unknown.
	came   atomic.Int64
	left   int64
	told   atomic.Bool
	strict bool
}

// tell says once what the body shows of its connection: nil if it is of use.
func (b *pacedBody) tell(err error) {
	switch {
	case b.told.Swap(true):
	case err == nil:
		b.result.Prove()
	default:
		b.result.Fail(err)
	}
}

// Close fails the connection of an answer that was of no use.
func (b *pacedBody) Close() error {
	if b.strict && b.came.Load() == 0 && b.of.Context().Err() == nil {
		b.tell(errUnread)
	}
	return b.ReadCloser.Close()
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	came := b.came.Add(int64(n))
	switch {
	case err == io.EOF, came >= useful, came == b.left:
		b.tell(nil)
	case err != nil && b.of.Context().Err() == nil:
		b.tell(printable.Error(err))
	}
	return n, err
}
