package link

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// PacketSocket sends and receives UDP datagrams over one link, to and from any address.
type PacketSocket interface {
	net.PacketConn
	// Send sends a datagram to HOST:PORT. It resolves a name through the link.
	Send(ctx context.Context, payload []byte, address string) error
	// Receive waits for a datagram. The rest of one that is larger than p is lost.
	Receive(p []byte) (n int, from netip.AddrPort, err error)
	// Resolve returns the address of HOST:PORT to which Send sends.
	Resolve(ctx context.Context, address string) (netip.AddrPort, error)
}

// Packets opens a UDP socket that is bound to the device.
func (d Dialer) Packets(ctx context.Context) (PacketSocket, error) {
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
	to, err := s.Resolve(ctx, address)
	if err != nil {
		return &net.OpError{Op: "send", Net: "udp", Err: err}
	}
	_, err = s.WriteToUDPAddrPort(payload, to)
	return err
}

func (s *packetSocket) Resolve(ctx context.Context, address string) (netip.AddrPort, error) {
	return s.by.resolve(ctx, address)
}

func (s *packetSocket) Receive(p []byte) (int, netip.AddrPort, error) {
	n, from, err := s.ReadFromUDPAddrPort(p)
	return n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), err
}

// resolve returns an address that the dialer may use.
func (d Dialer) resolve(ctx context.Context, address string) (netip.AddrPort, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if literal, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(literal, uint16(port)), d.checkFamily(literal)
	}
	found, err := d.names().lookup(ctx, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(found[0], uint16(port)), nil
}
