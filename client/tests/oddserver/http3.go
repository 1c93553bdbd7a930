package oddserver

import (
	"errors"
	"net"
	"net/http/httptest"
	"strconv"

	"github.com/quic-go/quic-go/http3"
)

// ServeHTTP3 also serves by HTTP/3 what a server of Start serves: at these addresses, on the same port, until
// stop is called.
func (s *Server) ServeHTTP3(beside *httptest.Server, addresses ...string) (stop func() error, err error) {
	server := &http3.Server{Handler: s, TLSConfig: http3.ConfigureTLSConfig(beside.TLS)}
	port := beside.Listener.Addr().(*net.TCPAddr).Port
	for _, address := range addresses {
		socket, err := net.ListenPacket("udp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return nil, errors.Join(err, server.Close())
		}
		go func() {
			defer socket.Close()
			_ = server.Serve(socket)
		}()
	}
	return server.Close, nil
}
