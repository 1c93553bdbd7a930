package proxy

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/transport"
)

var errTruncated = errors.New("the body may be cut short: the server told no length, and the connection ended without TLS's close_notify")

// guardEnd sends a request. If only the end of the connection ends the answer, the answer fails
// there without TLS's close_notify: anybody on the way may have truncated it (RFC 9112 9.8).
// Without TLS this cannot be detected.
func guardEnd(by http.RoundTripper, request *http.Request, log *slog.Logger) (*http.Response, error) {
	var used atomic.Pointer[transport.EndNoticer]
	response, err := transport.Paced(by, request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			if conn, ok := below[*transport.EndNoticer](got.Conn); ok { // With TLS.
				used.Store(conn)
			}
		},
	})), nil, trialOf, false)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols || transport.IsFramed(response) {
		return response, err
	}
	if conn := used.Load(); conn != nil {
		log = log.With("host", request.URL.Host)
		response.Body = &unframedBody{response.Body, conn, log}
	}
	return response, nil
}

// unframedBody is a body that ends with its connection.
type unframedBody struct {
	io.ReadCloser
	conn *transport.EndNoticer
	log  *slog.Logger
}

func (b *unframedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && b.conn.Ended() {
		b.log.Warn("an answer is cut off", "error", errTruncated)
		err = errTruncated
	}
	return n, err
}

// trialOf returns the trial of a connection below TLS and other wrappers.
func trialOf(conn net.Conn) *link.Trial {
	if socket, ok := below[link.Socket](conn); ok {
		return socket.Trial()
	}
	return nil
}

// below returns the connection of this type below TLS and other wrappers.
func below[T net.Conn](conn net.Conn) (found T, ok bool) {
	for {
		if found, ok = conn.(T); ok {
			return found, true
		}
		above, more := conn.(interface{ NetConn() net.Conn })
		if !more {
			return found, false
		}
		conn = above.NetConn()
	}
}
