package oddserver

import (
	"crypto/tls"
	"net"

	"github.com/quic-go/quic-go/http3"
)

// serveHTTP3 also serves by HTTP/3 at the addresses of the group, until the group is closed.
func (s *Server) serveHTTP3(g *group, config *tls.Config) error {
	g.http3 = &http3.Server{Handler: s, TLSConfig: http3.ConfigureTLSConfig(config)}
	for _, l := range g.all {
		socket, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil {
			return err
		}
		go func() {
			defer socket.Close()
			_ = g.http3.Serve(socket)
		}()
	}
	return nil
}
