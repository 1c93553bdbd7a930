package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/socks"
)

// mostAssociations limits the UDP associations at a time. Each has a socket to its client and one to
// a link, and two buffers of socks.MaxDatagram.
const mostAssociations = 64

var errTooMany = errors.New("there are too many UDP associations")

// associate serves a UDP association until its TCP connection or the proxy ends (RFC 1928 7). It
// reads the connection from from. wanted is the address from which the client expects to send.
func (p *Proxy) associate(ctx context.Context, client *net.TCPConn, from io.Reader, command socks.Command, wanted string) error {
	select {
	case p.associations <- struct{}{}:
		defer func() { <-p.associations }()
	default:
		return errTooMany
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &association{proxy: p}
	if err := a.open(ctx); err != nil {
		return err
	}
	defer a.close()
	defer client.Close() // Before close waits for goroutines that may write to the client.
	defer p.serving.atEnd(func() { client.Close() })()
	if command == socks.AssociateFramed {
		a.client = &socks.Framed{From: from, To: client}
		if err := socks.Answer(client, socks.Done, client.LocalAddr()); err == nil {
			a.serve(ctx)
		}
		return nil
	}
	own, err := newClientSocket(client, wanted)
	if err != nil {
		return err
	}
	defer own.Close()
	a.client = own
	if err := socks.Answer(client, socks.Done, own.LocalAddr()); err != nil {
		return nil
	}
	go func() {
		io.Copy(io.Discard, from) // Until the TCP connection ends.
		cancel()
		own.Close()
	}()
	a.serve(ctx)
	return nil
}

// association relays datagrams between a client and one link. If the link fails, it takes another.
type association struct {
	proxy *Proxy
	// client sends and receives datagrams with headers.
	client io.ReadWriter
	// receiving counts the goroutines that receive from links.
	receiving sync.WaitGroup
	// socket leads to the link by. The device of by was running at checked.
	socket  link.PacketSocket
	by      *route
	checked time.Time
}

// checkInterval is how often an association looks whether its link's device is running. Otherwise
// the kernel drops datagrams there without an error.
const checkInterval = 100 * time.Millisecond

// open opens a socket over the best link that can open one. Devices that are not running come last.
func (a *association) open(ctx context.Context) error {
	var failures []error
	order := a.proxy.routes.best()
	slices.SortStableFunc(order, func(a, b *route) int { return stopped(a) - stopped(b) })
	for _, r := range order {
		if r.Packets == nil {
			failures = append(failures, &linkError{r.Name, errors.ErrUnsupported})
			continue
		}
		socket, err := r.Packets(ctx)
		if err == nil {
			a.socket, a.by = socket, r
			return nil
		}
		failures = append(failures, &linkError{r.Name, err})
		a.proxy.routes.fail(r)
	}
	return errors.Join(failures...)
}

// stopped is 1 for a route whose device is not running, else 0.
func stopped(r *route) int {
	if link.IsRunning(r.Device) {
		return 0
	}
	return 1
}

// close waits for the end of what the association has started.
func (a *association) close() {
	a.socket.Close()
	a.receiving.Wait()
}

// serve relays datagrams until the client has ended.
func (a *association) serve(ctx context.Context) {
	a.receive()
	buffer := make([]byte, socks.MaxDatagram)
	for {
		n, err := a.client.Read(buffer)
		if err != nil {
			return
		}
		address, payload, err := socks.ParseDatagram(buffer[:n])
		if err == nil {
			err = a.send(ctx, payload, address)
		}
		if err != nil && ctx.Err() == nil {
			a.proxy.Log.Debug("a datagram is lost", "address", printable.Quote(address), "error", err)
		}
	}
}

// receive relays datagrams from the present link to the client until the socket is closed.
func (a *association) receive() {
	socket, by := a.socket, a.by
	a.receiving.Go(func() {
		buffer := make([]byte, socks.MaxDatagram)
		for {
			n, from, err := socket.Receive(buffer)
			if err != nil {
				return
			}
			if a.proxy.Count != nil {
				a.proxy.Count(by.Name, quantity.Bytes(n))
			}
			a.client.Write(socks.Datagram(from, buffer[:n]))
		}
	})
}

// send sends a datagram. If the present link cannot, the association moves to one that can.
func (a *association) send(ctx context.Context, payload []byte, address string) error {
	err := a.check()
	if err == nil {
		err = a.socket.Send(ctx, payload, address)
	}
	if err == nil || !isOfLink(err) {
		return err
	}
	for _, other := range a.proxy.routes.best() {
		if other == a.by || other.Packets == nil || !link.IsRunning(other.Device) {
			continue
		}
		socket, err := other.Packets(ctx)
		if err != nil {
			continue
		}
		if err := socket.Send(ctx, payload, address); err != nil {
			socket.Close()
			continue
		}
		a.proxy.routes.fail(a.by)
		a.socket.Close()
		a.socket, a.by = socket, other
		a.receive()
		return nil
	}
	return err
}

// check returns an error if the link's device is not running.
func (a *association) check() error {
	if time.Since(a.checked) < checkInterval {
		return nil
	}
	if !link.IsRunning(a.by.Device) {
		return &linkError{a.by.Name, syscall.ENETDOWN}
	}
	a.checked = time.Now()
	return nil
}

// isOfLink reports whether a link cannot send at all, or not to this address.
func isOfLink(err error) bool {
	for _, one := range []error{syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENODEV} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// clientSocket exchanges datagrams with the client of an association alone.
type clientSocket struct {
	*net.UDPConn
	host netip.Addr

	mu sync.Mutex
	// port is the client's port, 0 until its first datagram.
	port uint16
}

// newClientSocket opens a socket at the address by which the client reaches the proxy.
func newClientSocket(client *net.TCPConn, wanted string) (*clientSocket, error) {
	at := client.LocalAddr().(*net.TCPAddr)
	opened, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Zone: at.Zone})
	if err != nil {
		return nil, err
	}
	s := &clientSocket{UDPConn: opened, host: client.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()}
	// A client behind a NAT does not know from which port its datagrams will come.
	if said, err := netip.ParseAddrPort(wanted); err == nil && (said.Addr().IsUnspecified() || said.Addr() == s.host) {
		s.port = said.Port()
	}
	return s, nil
}

// Read waits for a datagram of the client. It drops those of others.
func (s *clientSocket) Read(p []byte) (int, error) {
	for {
		n, from, err := s.ReadFromUDPAddrPort(p)
		if err != nil {
			return 0, err
		}
		if s.isClient(from) {
			return n, nil
		}
	}
}

// isClient reports whether an address is the client's. The first port of the client's host becomes
// the client's, unless the client said it.
func (s *clientSocket) isClient(from netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from.Addr().Unmap() != s.host {
		return false
	}
	if s.port == 0 {
		s.port = from.Port()
	}
	return from.Port() == s.port
}

// Write sends a datagram to the client, as soon as its port is known.
func (s *clientSocket) Write(p []byte) (int, error) {
	s.mu.Lock()
	port := s.port
	s.mu.Unlock()
	if port == 0 {
		return len(p), nil
	}
	return s.WriteToUDPAddrPort(p, netip.AddrPortFrom(s.host, port))
}
