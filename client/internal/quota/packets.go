package quota

import (
	"context"
	"net/netip"

	"github.com/linklab/linklab/client/internal/link"
)

// OpenPackets opens a socket for datagrams.
type OpenPackets func(ctx context.Context) (link.PacketSocket, error)

// Packets applies the quota to the sockets that open opens.
func (l *Link) Packets(open OpenPackets) OpenPackets {
	return func(ctx context.Context) (link.PacketSocket, error) {
		if err := l.Err(); err != nil {
			return nil, err
		}
		socket, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return &packetSocket{socket, l, newPace(l)}, nil
	}
}

// packetSocket is a socket for datagrams within the quota of its link.
type packetSocket struct {
	link.PacketSocket
	link *Link
	pace pace
}

func (s *packetSocket) Send(ctx context.Context, payload []byte, address string) error {
	if err := s.link.Err(); err != nil {
		return err
	}
	if err := s.PacketSocket.Send(ctx, payload, address); err != nil {
		return err
	}
	s.link.add(len(payload))
	return nil
}

// Receive delays datagrams to the allowed rate. The kernel drops those that find no room meanwhile.
func (s *packetSocket) Receive(p []byte) (int, netip.AddrPort, error) {
	if err := s.link.Err(); err != nil {
		return 0, netip.AddrPort{}, err
	}
	n, from, err := s.PacketSocket.Receive(p)
	s.link.add(n)
	if waitErr := s.pace.wait(n); err == nil {
		err = waitErr
	}
	return n, from, err
}

func (s *packetSocket) Close() error {
	s.pace.close()
	return s.PacketSocket.Close()
}
