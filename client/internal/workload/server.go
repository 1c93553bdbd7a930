package workload

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/transport"
)

// How much is read from or written to a connection at a time, in bytes. A message is written together
// with its header, as at most one TLS record (RFC 8446 5.1).
const (
	readSize  = 64 << 10
	writeSize = 16 << 10
)

// Route is how requests reach the server.
type Route struct {
	// Device is the network device. If it is empty, the system chooses.
	Device string
	// Multipath requests Multipath TCP.
	Multipath bool
	// Gateway, if set, is the address of multilink's proxy, which precedes URLs.
	Gateway string
	TLS     *tls.Config
}

// server sends requests over HTTP/1.1, as most players do, browsers with several connections, and the
// clients of the gateway. A request uses a free connection, or a new one.
type server struct {
	client *http.Client
	url    string
}

func newServer(u *url.URL, r Route, connections int) *server {
	dialer := &net.Dialer{}
	if r.Device != "" {
		dialer = link.Dialer{Device: r.Device}.Plain()
	}
	// As in browsers and players: a probe of an idle connection would wake the radio. GiveUp limits
	// the wait for an answer.
	dialer.KeepAlive = -1
	dialer.SetMultipathTCP(r.Multipath)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	text := u.String()
	if r.Gateway != "" {
		text = r.Gateway + "/" + text
	}
	config := r.TLS.Clone()
	if config != nil {
		// As in OpenSSL. Go would write the first records separately, each in a packet.
		config.DynamicRecordSizingDisabled = true
	}
	by := transport.Bounded()
	by.DialContext = dialer.DialContext
	by.TLSClientConfig = config
	by.Protocols = &protocols
	by.MaxConnsPerHost, by.MaxIdleConnsPerHost = connections, connections
	by.WriteBufferSize, by.ReadBufferSize = writeSize, readSize
	return &server{url: text, client: &http.Client{Transport: by}}
}

func (s *server) close() { s.client.CloseIdleConnections() }

// ask sends a message and returns the header of the answer.
func (s *server) ask(ctx context.Context, m message) (*http.Response, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if m.body > 0 {
		method, body = http.MethodPost, bytes.NewReader(noise(m.body))
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(m.body)
	request.Header.Set("Range", transport.RangeHeader(m.part))
	answer, err := s.client.Do(request)
	if inner := new(url.Error); errors.As(err, &inner) {
		return nil, inner.Err // The user knows the URL.
	}
	return answer, err
}

// noise returns the body of a message. Its content does not matter.
func noise(size quantity.Bytes) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte(i * 167)
	}
	return p
}
