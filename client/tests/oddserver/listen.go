package oddserver

import (
	"errors"
	"net"
	"sync"

	"github.com/quic-go/quic-go/http3"
)

// listen listens at several addresses, on the port of the first one.
func listen(addresses []string) (all []net.Listener, err error) {
	port := "0"
	for _, address := range addresses {
		if host, named, err := net.SplitHostPort(address); err == nil {
			address, port = host, named
		}
		l, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil {
			for _, l := range all {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		all = append(all, l)
	}
	return all, nil
}

// group is a listener that combines several listeners.
type group struct {
	net.Listener
	all      []net.Listener
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
	// http3 serves at the same addresses, nil for other protocols.
	http3 *http3.Server
}

func newGroup(all []net.Listener) *group {
	g := &group{Listener: all[0], all: all, accepted: make(chan net.Conn), closed: make(chan struct{})}
	for _, l := range all {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				select {
				case g.accepted <- conn:
				case <-g.closed:
					conn.Close()
				}
			}
		}()
	}
	return g
}

func (g *group) Accept() (net.Conn, error) {
	select {
	case conn := <-g.accepted:
		return conn, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

func (g *group) Close() (err error) {
	g.once.Do(func() {
		close(g.closed)
		for _, l := range g.all {
			err = errors.Join(err, l.Close())
		}
		if g.http3 != nil {
			err = errors.Join(err, g.http3.Close())
		}
	})
	return err
}
