package link

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dialer opens connections through one network device.
//
// The device is bound with SO_BINDTODEVICE, which needs no privilege since
// Linux 5.7 and, unlike a bound source address, survives a change of address.
type Dialer struct {
	Device string
	// NameServers are asked in turn; if there are none, the machine's are.
	NameServers []netip.AddrPort
	// FewAcks has TCP acknowledge every second packet from the start, which takes
	// less energy. Else Linux acknowledges each while the receive window grows.
	FewAcks bool
}

// Dial connects to a TCP address by plain TCP (MPTCP would use the other
// links as well) and resolves host names through the same device if it can.
func (d Dialer) Dial(ctx context.Context, address string) (Socket, error) {
	asked := &askedServers{}
	c, err := d.dialer(asked).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, asked.named(err)
	}
	conn, err := newConn(c.(*net.TCPConn), d.FewAcks)
	if err != nil {
		c.Close()
		return nil, err
	}
	return conn, nil
}

// Plain is the standard library's dialer through the device, whose connections
// read as they come.
func (d Dialer) Plain() *net.Dialer { return d.dialer(&askedServers{}) }

func (d Dialer) dialer(asked *askedServers) *net.Dialer {
	dialer := d.bound()
	dialer.Resolver = d.resolver(stubFile, asked)
	return dialer
}

func (d Dialer) bound() *net.Dialer {
	dialer := &net.Dialer{Control: d.bind}
	dialer.SetMultipathTCP(false)
	return dialer
}

// bind binds a socket to the device.
func (d Dialer) bind(_, _ string, c syscall.RawConn) error {
	var bindErr error
	if err := c.Control(func(fd uintptr) {
		bindErr = unix.BindToDevice(int(fd), d.Device)
	}); err != nil {
		return err
	}
	if bindErr != nil {
		return fmt.Errorf("bind to device %s: %w", d.Device, bindErr)
	}
	return nil
}
