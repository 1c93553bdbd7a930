package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
)

// What a stranger may make a client take before a body: mostHeader bytes of header,
// and of trailer, and mostInterim answers such as 103 before the one that counts.
// Servers send 8 KiB at most; a browser takes 256 KiB.
const (
	mostHeader  = 256 << 10
	mostInterim = 20
)

var errInterim = errors.New("the server sends 1xx answers without end: " + fmt.Sprint(mostInterim) + " are allowed")

// Bounded is net/http's transport with the bounds that strangers need. All are made
// of it. It decodes nothing.
func Bounded() *http.Transport {
	return &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: mostHeader}
}

// withFewInterim returns a context that ends after too many interim answers. Whoever
// is told of these has net/http count none of their bytes.
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
