package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
)

// useful is how many bytes of a body, new ones if a Proof tells them, prove that a connection works.
// A shorter body proves it at its end.
const useful = 16 << 10

var errUnread = errors.New("the server answers with what was not asked for")

// result receives the outcome of a request.
type result interface {
	Prove()
	Leave()
	Fail(error)
}

// Proof lets the bytes that a request brings prove its connection. Only its user knows which bytes
// are new. It is for one goroutine.
type Proof struct {
	body  *pacedBody
	fresh quantity.Bytes
}

type proofKey struct{}

// WithProof returns a context whose requests prove their connections by a Proof alone.
func WithProof(ctx context.Context, p *Proof) context.Context {
	return context.WithValue(ctx, proofKey{}, p)
}

func proofOf(request *http.Request) *Proof {
	proof, _ := request.Context().Value(proofKey{}).(*Proof)
	return proof
}

// Fresh counts new bytes. isAll means that all of a file has come.
func (p *Proof) Fresh(bytes quantity.Bytes, isAll bool) {
	p.fresh += bytes
	if p.body != nil && (p.fresh >= useful || isAll && p.fresh > 0) {
		p.body.tell(nil)
	}
}

// Paced sends a request and reports its outcome, which decides how soon its server may be
// dialled again. The request uses the connection with the trial on. If on is nil, trialOf
// tells the trial of the connection that net/http takes. With strict, a server error or an
// unread body counts as a failure; without it, a request that was cancelled does not count.
func Paced(by http.RoundTripper, request *http.Request, on *link.Trial, trialOf func(net.Conn) *link.Trial, strict bool) (*http.Response, error) {
	var outcome result = on
	sent := request
	if on == nil {
		ctx, attempt := link.WithAttempt(withFewInterim(request.Context()))
		outcome = attempt
		sent = request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) {
				awaitHead(got.Conn)
				attempt.Uses(trialOf(got.Conn))
			},
		}))
	}
	response, err := by.RoundTrip(sent)
	err = asHeadError(err)
	switch {
	case err != nil:
		if request.Context().Err() == nil {
			outcome.Fail(printable.Error(err))
		} else if !strict && context.Cause(request.Context()) == context.Canceled {
			outcome.Leave()
		}
		return nil, err
	case strict && isFailure(response) && isReusable(response):
		// The next request can use the same connection.
	case strict && isFailure(response):
		outcome.Fail(failure(response))
	case response.StatusCode == http.StatusSwitchingProtocols, response.ContentLength == 0, request.Method == http.MethodHead:
		if proofOf(request) == nil || request.Method != http.MethodHead {
			outcome.Prove()
		}
	default:
		body := &pacedBody{ReadCloser: response.Body, of: request, result: outcome, left: response.ContentLength, strict: strict}
		response.Body = body
		if proof := proofOf(request); proof != nil {
			*proof, body.isProvenLater = Proof{body: body}, true
		}
	}
	return response, nil
}

// isFailure reports whether a server says that it failed, or that it wants fewer requests. 501 is
// an answer: the server cannot do what was asked, such as a PUT of a range.
func isFailure(response *http.Response) bool {
	code := response.StatusCode
	return code >= http.StatusInternalServerError && code != http.StatusNotImplemented ||
		code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
}

// pacedBody is a body that proves its connection, or fails it. It may be closed during a read.
type pacedBody struct {
	io.ReadCloser
	of     *http.Request
	result result
	// came counts the bytes so far. left is the length of the body, negative if unknown.
	came   atomic.Int64
	left   int64
	told   atomic.Bool
	strict bool
	// isProvenLater is true if a Proof proves the connection.
	isProvenLater bool
}

// tell reports once whether the connection works: err is nil if it does.
func (b *pacedBody) tell(err error) {
	switch {
	case b.told.Swap(true):
	case err == nil:
		b.result.Prove()
	default:
		b.result.Fail(err)
	}
}

// Close ends the use of the connection if it has no outcome yet. With strict, it fails the connection of a body
// of which nothing was read.
func (b *pacedBody) Close() error {
	switch {
	case b.strict && b.came.Load() == 0 && b.of.Context().Err() == nil:
		b.tell(errUnread)
	case !b.strict && !b.told.Swap(true):
		b.result.Leave()
	}
	return b.ReadCloser.Close()
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	came := b.came.Add(int64(n))
	switch {
	case err == io.EOF, came >= useful, came == b.left:
		if !b.isProvenLater {
			b.tell(nil)
		}
	case err != nil && b.of.Context().Err() == nil:
		b.tell(printable.Error(err))
	}
	return n, err
}
