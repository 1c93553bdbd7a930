package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/linklab/linklab/client/internal/link"
)

// mayUse reports whether a client at this address may use the proxy.
func (p *Proxy) mayUse(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	address := at.Addr().Unmap()
	if address.IsLoopback() {
		return true
	}
	for _, prefix := range p.Allow {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// isOurs reports whether the Host header names the proxy by an address, or as localhost. A web
// page can make its own name resolve to 127.0.0.1, so that the browser talks to the proxy (DNS
// rebinding). But it cannot make the browser send another name in Host.
func isOurs(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	_, err := netip.ParseAddr(name)
	return err == nil || name == "localhost"
}

// errLoop means that a request would come back to the proxy.
var errLoop = errors.New("the request leads back to this proxy")

// guarded returns a dial that refuses connections to the proxy itself, by any name.
func (p *Proxy) guarded(dial func(context.Context, string) (link.Socket, error)) func(context.Context, string) (link.Socket, error) {
	return func(ctx context.Context, address string) (link.Socket, error) {
		socket, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		if p.isSelf(socket) {
			socket.Close()
			return nil, errLoop
		}
		return socket, nil
	}
}

// isSelf reports whether the connection leads to the proxy's listener: to its port, at an
// address of this machine.
func (p *Proxy) isSelf(conn net.Conn) bool {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || p.Port == 0 || remote.Port != p.Port {
		return false
	}
	if remote.IP.IsLoopback() {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range addresses {
		if a, ok := a.(*net.IPNet); ok && a.IP.Equal(remote.IP) {
			return true
		}
	}
	return false
}

// via returns the proxy's entry in Via, which every forwarded request carries. It differs in
// each process, so that a chain of proxies is no loop.
func (p *Proxy) via(protocol string) string {
	return strings.TrimPrefix(protocol, "HTTP/") + " " + p.name
}

func (p *Proxy) hasPassed(r *http.Request) bool {
	for _, value := range r.Header.Values("Via") {
		if strings.Contains(value, p.name) {
			return true
		}
	}
	return false
}
