package oddserver

import (
	"errors"
	"net"
	"sync"
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
	})
	return err
}

// Names answers every query for an address with the same address, as a name server does (RFC 1035 4).
func Names(conn net.PacketConn, address [4]byte) {
	question := make([]byte, 512)
	for {
		n, from, err := conn.ReadFrom(question)
		if err != nil {
			return
		}
		end := 12
		for end < n && question[end] != 0 {
			end += 1 + int(question[end])
		}
		if end += 5; end > n {
			continue
		}
		reply := append([]byte(nil), question[:end]...)
		reply[2], reply[3] = 0x84, 0 // An authoritative answer.
		copy(reply[6:12], make([]byte, 6))
		if kind := question[end-3]; kind == 1 {
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
			reply = append(reply, address[:]...)
		}
		_, _ = conn.WriteTo(reply, from)
	}
}
