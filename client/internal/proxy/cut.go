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

var errCut = errors.New("the body may be cut short: the server told no length, and the connection ended without TLS's close_notify")

// uncut sends a request. An answer that nothing but the end of its connection
// ends fails there if TLS says no goodbye: anybody on the way may have cut it
// (RFC 9112 9.8). Without TLS nothing could tell.
func uncut(by http.RoundTripper, request *http.Request, log *slog.Logger) (*http.Response, error) {
	var used atomic.Pointer[transport.EndNoticer]
	response, err := transport.Paced(by, request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			if conn, ok := below[*transport.EndNoticer](got.Conn); ok {
				used.Store(conn)
			}
		},
	})), nil, trialOf, false)
	if err != nil || response.TLS == nil || response.StatusCode == http.StatusSwitchingProtocols || transport.IsFramed(response) {
		return response, err
	}
	if conn := used.Load(); conn != nil {
		log = log.With("host", request.URL.Host)
		response.Body = &endingBody{response.Body, conn, log}
	}
	return response, nil
}

// endingBody is a body that ends with its connection.
type endingBody struct {
	io.ReadCloser
	conn *transport.EndNoticer
	log  *slog.Logger
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && b.conn.Ended() {
		b.log.Warn("an answer is cut off", "error", errCut)
		err = errCut
	}
	return n, err
}

// trialOf is that of a connection below TLS and the like.
func trialOf(conn net.Conn) *link.Trial {
	if socket, ok := below[link.Socket](conn); ok {
		return socket.Trial()
	}
	return nil
}

// below is the connection of that type below TLS, a quota and the like.
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
