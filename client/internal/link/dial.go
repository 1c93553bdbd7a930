package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attemptDelay is how long one address may take to connect before the next one is tried in
// parallel (RFC 8305 5).
const attemptDelay = 250 * time.Millisecond

// The values of Dialer.Family.
const (
	IPv4 = "ip4"
	IPv6 = "ip6"
)

// Dialer opens connections through one network device.
//
// It binds sockets to the device with SO_BINDTODEVICE. This needs no privilege since Linux 5.7.
// Unlike a bound source address, it still works after a change of address.
type Dialer struct {
	Device string
	// NameServers are the DNS servers. Without entries the machine's servers are used.
	NameServers []netip.AddrPort
	// Siblings are the devices of all links. If the route to one of the machine's name
	// servers leads through a sibling, the server is also asked through that sibling.
	Siblings []string
	// Family is IPv4 or IPv6 to use only such addresses, else "".
	Family string
	// Memory, if set, holds what dialers of the link have learned.
	Memory *Memory
	// FewAcks lets TCP acknowledge every second packet from the start, which saves energy.
	// By default Linux acknowledges each packet while the receive window grows.
	FewAcks bool
}

// Dial connects to a TCP address and resolves its host name through the same device if
// possible. It does not use MPTCP, which would use the other links as well. If a host has
// several addresses, Dial and the first bytes find one that works (see opening).
func (d Dialer) Dial(ctx context.Context, address string) (Socket, error) {
	if d.Memory == nil {
		d.Memory = new(Memory)
	}
	ways, isName, err := d.ways(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	started := time.Now()
	tcp, by, rest, err := race(ctx, d.Memory, ways, d.connect)
	if err != nil {
		return nil, err
	}
	conn, err := d.socket(ctx, tcp, by)
	if err != nil {
		return nil, err // A nil *Conn in an interface would not be nil.
	}
	if isName {
		conn.wires.open(d, by, rest, time.Since(started))
	}
	return conn, nil
}

// ways returns the ways to HOST:PORT, the best first, and whether the host is a name.
func (d Dialer) ways(ctx context.Context, address string) (ways []way, isName bool, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, false, err
	}
	if literal, err := netip.ParseAddr(host); err == nil {
		return []way{d.Memory.way(literal, uint16(port))}, false, d.checkFamily(literal)
	}
	found, err := d.names().lookup(ctx, host)
	return d.Memory.ways(found, uint16(port)), true, err
}

// socket makes a Conn of a connection. On failure it closes the connection.
func (d Dialer) socket(ctx context.Context, tcp *net.TCPConn, by way) (*Conn, error) {
	under, err := newWire(tcp)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	return newConn(under, by.address, d, roomOf(ctx)), nil
}

// checkFamily refuses an address of a family that is not to be used.
func (d Dialer) checkFamily(a netip.Addr) error {
	if d.Family == "" || a.Unmap().Is4() == (d.Family == IPv4) {
		return nil
	}
	return fmt.Errorf("%s is not used: only %s addresses are", a, map[string]string{IPv4: "IPv4", IPv6: "IPv6"}[d.Family])
}

// Plain returns the standard library's dialer through the device. Its connections do not read
// in batches.
func (d Dialer) Plain() *net.Dialer {
	dialer := d.bound()
	dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, server string) (net.Conn, error) {
		address, err := netip.ParseAddrPort(server)
		if err != nil {
			return nil, err
		}
		return d.through(address).dial(ctx, network)
	}}
	return dialer
}

func (d Dialer) names() *names {
	d.Memory.mu.Lock()
	defer d.Memory.mu.Unlock()
	if d.Memory.names == nil {
		d.Memory.names = newNames(d)
	}
	return d.Memory.names
}

func (d Dialer) bound() *net.Dialer {
	dialer := &net.Dialer{Control: d.bind}
	dialer.SetMultipathTCP(false)
	return dialer
}

// way is an address of a server, and how to reach it.
type way struct {
	address netip.Addr
	port    uint16
	// small is true if both ends must send small segments.
	small bool
}

func (w way) endpoint() netip.AddrPort { return netip.AddrPortFrom(w.address, w.port) }

// smallSegment is the payload of an IPv6 packet of 1280 bytes, which every link carries
// (RFC 8200 5).
const smallSegment = 1280 - 40 - 20

// connect connects by one way.
func (d Dialer) connect(ctx context.Context, by way) (*net.TCPConn, error) {
	dialer := d.bound()
	if by.small {
		dialer.Control = func(network, address string, c syscall.RawConn) error {
			var failed error
			err := c.Control(func(fd uintptr) {
				failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, smallSegment)
			})
			return errors.Join(err, failed, d.bind(network, address, c))
		}
	}
	conn, err := dialer.DialContext(ctx, "tcp", by.endpoint().String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// race connects by the first way that answers. It tries the next way in parallel after
// attemptDelay. rest holds the other ways that did not fail.
func race[C io.Closer](ctx context.Context, m *Memory, ways []way, connect func(context.Context, way) (C, error)) (conn C, by way, rest []way, err error) {
	if len(ways) == 1 {
		conn, err = connect(ctx, ways[0])
		return conn, ways[0], nil, err
	}
	type answer struct {
		conn C
		err  error
		way  int
	}
	ctx, cancel := context.WithCancel(ctx)
	answers, dialing, next := make(chan answer), 0, 0
	defer func() {
		cancel()
		for range dialing {
			if late := <-answers; late.err == nil {
				late.conn.Close()
			}
		}
	}()
	failed := make([]bool, len(ways))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next < len(ways) || dialing > 0 {
		select {
		case <-timer.C:
			if next == len(ways) {
				continue
			}
			this := next
			next++
			dialing++
			go func() {
				conn, err := connect(ctx, ways[this])
				answers <- answer{conn, err, this}
			}()
			timer.Reset(attemptDelay)
		case one := <-answers:
			dialing--
			if one.err != nil {
				failed[one.way] = true
				err = cmp.Or(err, one.err)
				timer.Reset(0)
				continue
			}
			for i, other := range ways {
				switch {
				case i == one.way || failed[i]:
				case i < one.way:
					m.noteLate(other.address)
					rest = append(rest, other)
				default:
					rest = append(rest, other)
				}
			}
			return one.conn, ways[one.way], rest, nil
		}
	}
	return conn, way{}, nil, err
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
