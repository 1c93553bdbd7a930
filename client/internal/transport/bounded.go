package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
	"time"
)

// Limits of what an unknown server may send before a body: mostHeader bytes of header
// and of trailer, and mostInterim answers such as 103 before the final one. Servers send
// at most 8 KiB. A browser accepts 256 KiB.
const (
	mostHeader  = 256 << 10
	mostInterim = 20
)

// mostContinue is how long a body waits for 100 where the server is asked first: many servers do not
// answer Expect.
const mostContinue = time.Second

var errInterim = errors.New("the server sends 1xx answers without end: " + fmt.Sprint(mostInterim) + " are allowed")

// Bounded returns net/http's transport with these limits. All transports of this client
// are made by it. It decodes no content coding.
func Bounded() *http.Transport {
	return &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: mostHeader, ExpectContinueTimeout: mostContinue}
}

// withFewInterim returns a context that ends after more than mostInterim interim answers.
// net/http limits the bytes of interim answers only if no Got1xxResponse is set.
func withFewInterim(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	var count atomic.Int32
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			if count.Add(1) > mostInterim {
				cancel(errInterim)
				return errInterim
			}
			return nil
		},
	})
}
