package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
)

// resolverFile names the name servers of a machine. Android has none.
const resolverFile = "/etc/resolv.conf"

// resolver asks name servers through the device: the Dialer's own, or else
// those of the machine.
func (d Dialer) resolver() *net.Resolver {
	var asked atomic.Uint32
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if len(d.NameServers) > 0 {
				next := int(asked.Add(1)-1) % len(d.NameServers)
				address = d.NameServers[next].String()
			} else if _, err := os.Stat(resolverFile); errors.Is(err, os.ErrNotExist) {
				return nil, errors.New("this machine names no name servers (" + resolverFile + "): give some with --dns")
			}
			return d.bound().DialContext(ctx, network, address)
		},
	}
}

// ParseNameServer reads ADDRESS or ADDRESS:PORT.
func ParseNameServer(text string) (netip.AddrPort, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(address, 53), nil
	}
	if both, err := netip.ParseAddrPort(text); err == nil {
		return both, nil
	}
	return netip.AddrPort{}, fmt.Errorf("%q is not a name server: allowed is ADDRESS or ADDRESS:PORT such as 192.168.1.1", text)
}
