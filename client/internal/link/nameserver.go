package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// resolverFile lists the name servers of a machine. Android has none.
	resolverFile = "/etc/resolv.conf"
	// stubFile lists the servers that systemd-resolved asks, in the same format. resolverFile
	// then lists only systemd-resolved itself.
	stubFile = "/run/systemd/resolve/resolv.conf"
	// mostNameServers limits how many are asked at once.
	mostNameServers = 8
)

// stub is the address of systemd-resolved.
var stub = netip.MustParseAddr("127.0.0.53")

// nameServer is a name server and the device that leads to it.
type nameServer struct {
	address netip.AddrPort
	// device is the device to which its socket is bound, "" for a server of this machine.
	device string
	// elsewhere is true if the server answers for another link.
	elsewhere bool
	// missing says why there is no server to ask.
	missing string
}

// dial connects to the server. The connection ends with ctx.
func (s nameServer) dial(ctx context.Context, network string) (net.Conn, error) {
	if s.missing != "" {
		return nil, errors.New(s.missing)
	}
	dialer := new(net.Dialer)
	if s.device != "" {
		dialer = Dialer{Device: s.device}.bound()
	}
	conn, err := dialer.DialContext(ctx, network, s.address.String())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	if datagrams, ok := conn.(*net.UDPConn); ok {
		return repeating{datagrams, ctx}, nil
	}
	return conn, nil
}

// askedAgain is how long a server may be silent before the UDP query is repeated. It doubles
// each time.
const askedAgain = 500 * time.Millisecond

// repeating repeats a query until ctx ends, because datagrams get lost. The standard library asks
// again only after 5 s.
type repeating struct {
	*net.UDPConn
	ctx context.Context
}

func (r repeating) Write(query []byte) (int, error) {
	go func() {
		for patience := askedAgain; ; patience *= 2 {
			select {
			case <-time.After(patience):
				_, _ = r.UDPConn.Write(query) // The reader learns of an error.
			case <-r.ctx.Done():
				return
			}
		}
	}()
	return r.UDPConn.Write(query)
}

// servers returns the name servers to ask for the link: its own, or the machine's. A server of
// the machine may be reachable only through another link, so it is asked there as well.
func (n *names) servers() (servers []nameServer, err error) {
	if len(n.of.NameServers) > 0 {
		for _, address := range n.of.NameServers {
			servers = append(servers, n.of.through(address))
		}
		return servers, nil
	}
	listed, err := readNameServers(n.resolverFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("this machine names no name servers (" + n.resolverFile + "): give some with --dns")
	}
	if len(listed) == 0 { // resolv.conf(5)
		listed = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}
	}
	for _, address := range listed {
		var behind []netip.AddrPort
		if address.Addr() == stub {
			behind, _ = readNameServers(n.stubFile) // Without this file only the stub is asked.
			behind = slices.DeleteFunc(behind, func(a netip.AddrPort) bool { return a.Addr().IsLoopback() })
		}
		for _, real := range append(behind, address) {
			server := n.of.through(real)
			server.elsewhere = real == address && len(behind) > 0
			servers = append(servers, server)
		}
	}
	servers = servers[:min(len(servers), mostNameServers)]
	for _, server := range slices.Clone(servers) {
		if device := n.owner(server); device != "" {
			servers = append(servers, nameServer{address: server.address, device: device, elsewhere: true})
		}
	}
	return servers, nil
}

// through returns the server as the link reaches it. A server of this machine cannot be
// reached through the device. It uses any link.
func (d Dialer) through(address netip.AddrPort) nameServer {
	if address.Addr().IsLoopback() {
		return nameServer{address: address}
	}
	return nameServer{address: address, device: d.Device}
}

// owner returns the device of the other link through which the machine's routes lead to the
// server, "" if there is none.
func (n *names) owner(server nameServer) string {
	if server.device == "" || len(n.of.Siblings) == 0 {
		return ""
	}
	conn, err := net.Dial("udp", server.address.String()) // This sends nothing.
	if err != nil {
		return ""
	}
	defer conn.Close()
	local := conn.LocalAddr().(*net.UDPAddr).IP
	for _, device := range n.of.Siblings {
		found, err := net.InterfaceByName(device)
		if err != nil || device == n.of.Device {
			continue
		}
		addresses, _ := found.Addrs() // A device that is gone has none.
		for _, a := range addresses {
			if one, ok := a.(*net.IPNet); ok && one.IP.Equal(local) {
				return device
			}
		}
	}
	return ""
}

// readNameServers reads resolv.conf(5).
func readNameServers(file string) (servers []netip.AddrPort, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		address, err := netip.ParseAddr(fields[1])
		if server := netip.AddrPortFrom(address, 53); err == nil && !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
	}
	return servers, nil
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
