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
	"sync"
	"sync/atomic"
)

const (
	// resolverFile names the name servers of a machine. Android has none.
	resolverFile = "/etc/resolv.conf"
	// stubFile has the same format and names those that systemd-resolved asks,
	// where resolverFile names only systemd-resolved itself.
	stubFile = "/run/systemd/resolve/resolv.conf"
)

// stub is systemd-resolved.
var stub = netip.MustParseAddr("127.0.0.53")

// resolver asks name servers through the device: the Dialer's own, or else
// those of the machine. A name server of the machine itself cannot be reached
// through the device, and asks through which it likes.
func (d Dialer) resolver(stubFile string, told *askedServers) *net.Resolver {
	var asked atomic.Uint32
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			servers := d.NameServers
			if len(servers) == 0 {
				var err error
				if servers, err = machineServers(address, stubFile); err != nil {
					return nil, err
				}
				if len(servers) > 1 && network == "udp" {
					told.add(servers...)
					return d.askAll(ctx, servers)
				}
			}
			server := servers[int(asked.Add(1)-1)%len(servers)]
			told.add(server)
			if server.Addr().IsLoopback() {
				return new(net.Dialer).DialContext(ctx, network, server.String())
			}
			return d.bound().DialContext(ctx, network, server.String())
		},
	}
}

// askedServers are the name servers that were asked for one connection. The standard
// library's errors name the server of resolverFile instead.
type askedServers struct {
	mu      sync.Mutex
	servers []string
}

func (a *askedServers) add(servers ...netip.AddrPort) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, server := range servers {
		if !slices.Contains(a.servers, server.String()) {
			a.servers = append(a.servers, server.String())
		}
	}
}

// named is the error with the servers that were asked.
func (a *askedServers) named(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if failed := new(net.DNSError); errors.As(err, &failed) && len(a.servers) > 0 {
		failed.Server = strings.Join(a.servers, ", ")
	}
	return err
}

// machineServers are to be asked instead of the one that resolverFile names:
// itself, or those behind systemd-resolved.
func machineServers(address, stubFile string) ([]netip.AddrPort, error) {
	if _, err := os.Stat(resolverFile); errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("this machine names no name servers (" + resolverFile + "): give some with --dns")
	}
	server, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	if server.Addr() == stub {
		if behind := nameServers(stubFile); len(behind) > 0 {
			return behind, nil
		}
	}
	return []netip.AddrPort{server}, nil
}

// nameServers reads resolv.conf(5), without servers of the machine itself.
func nameServers(file string) (servers []netip.AddrPort) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if address, err := netip.ParseAddr(fields[1]); err == nil && !address.IsLoopback() {
			servers = append(servers, netip.AddrPortFrom(address, 53))
		}
	}
	return servers
}

// askAll returns a connection to several name servers, bound to the device.
func (d Dialer) askAll(ctx context.Context, servers []netip.AddrPort) (net.Conn, error) {
	config := net.ListenConfig{Control: d.bind}
	conn, err := config.ListenPacket(ctx, "udp", ":0")
	if err != nil {
		return nil, err
	}
	return &serverGroup{UDPConn: conn.(*net.UDPConn), servers: servers}, nil
}

// serverGroup asks all its name servers at once. They are those of all links,
// and nothing tells which can be reached through this one.
type serverGroup struct {
	*net.UDPConn
	servers []netip.AddrPort
	// asked are those that were asked and have not refused.
	asked []netip.AddrPort
}

func (g *serverGroup) Write(p []byte) (int, error) {
	var failures []error
	for _, server := range g.servers {
		if _, err := g.WriteToUDPAddrPort(p, server); err != nil {
			failures = append(failures, err)
			continue
		}
		g.asked = append(g.asked, plain(server))
	}
	if len(g.asked) == 0 {
		return 0, errors.Join(failures...)
	}
	return len(p), nil
}

// Read returns the first answer, but one that is a refusal only if it is the
// last: providers' name servers refuse who comes from elsewhere.
func (g *serverGroup) Read(p []byte) (int, error) {
	for {
		n, from, err := g.ReadFromUDPAddrPort(p)
		if err != nil {
			return n, err
		}
		i := slices.Index(g.asked, plain(from))
		if i < 0 {
			continue
		}
		if isRefusal(p[:n]) && len(g.asked) > 1 {
			g.asked = slices.Delete(g.asked, i, i+1)
			continue
		}
		return n, nil
	}
}

// plain is the address as it compares with others.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// isRefusal reports whether an answer says that the server failed or does not
// want to answer (RFC 1035 4.1.1).
func isRefusal(answer []byte) bool {
	const serverFailure, refused = 2, 5
	if len(answer) < 4 {
		return true
	}
	code := answer[3] & 0xf
	return code == serverFailure || code == refused
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
