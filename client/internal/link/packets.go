package link

import (
	"context"
	"io"
	"net"
	"net/netip"
)

// PacketSocket sends and receives UDP datagrams over one link, to and from any address.
type PacketSocket interface {
	net.PacketConn
	// Send sends a datagram to HOST:PORT. It resolves a name through the link.
	Send(ctx context.Context, payload []byte, address string) error
	// Receive waits for a datagram. The rest of one that is larger than p is lost.
	Receive(p []byte) (n int, from netip.AddrPort, err error)
	// Connect connects to HOST:PORT over the socket, by the first of its addresses that answers. It tries them as
	// Dialer.Dial does.
	Connect(ctx context.Context, address string, by func(context.Context, netip.AddrPort) (io.Closer, error)) (io.Closer, error)
}

// Packets opens a UDP socket that is bound to the device.
func (d Dialer) Packets(ctx context.Context) (PacketSocket, error) {
	if d.Memory == nil {
		d.Memory = new(Memory)
	}
	network := map[string]string{"": "udp", IPv4: "udp4", IPv6: "udp6"}[d.Family]
	opened, err := (&net.ListenConfig{Control: d.bind}).ListenPacket(ctx, network, ":0")
	if err != nil {
		return nil, err
	}
	return &packetSocket{opened.(*net.UDPConn), d}, nil
}

type packetSocket struct {
	*net.UDPConn
	by Dialer
}

func (s *packetSocket) Send(ctx context.Context, payload []byte, address string) error {
	ways, _, err := s.by.ways(ctx, address)
	if err != nil {
		return &net.OpError{Op: "send", Net: "udp", Err: err}
	}
	_, err = s.WriteToUDPAddrPort(payload, ways[0].endpoint())
	return err
}

func (s *packetSocket) Connect(ctx context.Context, address string, by func(context.Context, netip.AddrPort) (io.Closer, error)) (io.Closer, error) {
	ways, _, err := s.by.ways(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: err}
	}
	conn, _, _, err := race(ctx, s.by.Memory, ways, func(ctx context.Context, w way) (io.Closer, error) { return by(ctx, w.endpoint()) })
	return conn, err
}

func (s *packetSocket) Receive(p []byte) (int, netip.AddrPort, error) {
	n, from, err := s.ReadFromUDPAddrPort(p)
	return n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), err
}
