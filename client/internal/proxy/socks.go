package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
)

// SOCKS5 (RFC 1928), for programs that want a connection and tell nobody what
// for: without authentication, CONNECT only. UDP ASSOCIATE and BIND are refused.
// socksWithin is how long a client may take to say where to, and a link to get
// there.
const (
	socksVersion    = 5
	socksNoAuth     = 0
	socksNoneWillDo = 0xff
	socksConnect    = 1
	socksIPv4       = 1
	socksName       = 3
	socksIPv6       = 4
	socksWithin     = 30 * time.Second
)

// The replies to a request (RFC 1928, section 6); socksNoneWillDo is one to what
// comes before it.
const (
	socksDone byte = iota
	socksFailed
	socksNotAllowed
	socksNoNetwork
	socksNoHost
	socksRefused
	_
	socksNoCommand
	socksNoAddressType
)

// socksError is a request that is refused.
type socksError struct {
	reply byte
	why   string
}

func (e *socksError) Error() string { return "SOCKS: " + e.why }

// bothListener accepts clients that speak HTTP, and serves those that speak
// SOCKS5 itself: the first byte tells them apart, since no method begins with it.
type bothListener struct {
	net.Listener
	ctx   context.Context
	proxy *Proxy
}

func (l *bothListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &bothConn{TCPConn: tcp, listener: l}, err
	}
	return conn, err
}

// bothConn is a client's connection as the HTTP server sees it: one that speaks
// SOCKS5 has ended without a request, as soon as it is served.
type bothConn struct {
	*net.TCPConn
	listener *bothListener
	heard    bool
}

func (c *bothConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.heard || n == 0 {
		return n, err
	}
	c.heard = true
	if b[0] != socksVersion {
		return n, err
	}
	c.listener.proxy.socks(c.listener.ctx, c.TCPConn, io.MultiReader(bytes.NewReader(bytes.Clone(b[:n])), c.TCPConn))
	return 0, io.EOF
}

// socks serves a client that speaks SOCKS5 until its connection ends; from is
// what it says.
func (p *Proxy) socks(ctx context.Context, client *net.TCPConn, from io.Reader) {
	if !p.serving.begin() {
		return
	}
	defer p.serving.done()
	client.SetDeadline(time.Now().Add(socksWithin))
	address, err := p.socksRequest(client, &socksReader{Reader: from})
	if err == nil {
		var server net.Conn
		var by *route
		if server, by, err = p.routes.dial(ctx, address); err == nil {
			defer server.Close()
			client.SetDeadline(time.Time{})
			if _, err := client.Write(socksReply(socksDone, server.LocalAddr())); err == nil {
				p.join(client, from, server, by)
			}
			return
		}
	}
	p.Log.Warn("a connection fails", "address", printable.Quote(address), "error", err)
	client.Write(socksReply(socksReplyTo(err), nil))
}

// socksReader reads what a client says until something is missing.
type socksReader struct {
	io.Reader
	err error
}

// next returns so many bytes, which mean something unless there is an error.
func (r *socksReader) next(n int) []byte {
	b := make([]byte, n)
	if r.err == nil {
		_, r.err = io.ReadFull(r, b)
	}
	return b
}

// socksRequest agrees with a client on how to go on, and reads to where it
// wants to be connected.
func (p *Proxy) socksRequest(client net.Conn, from *socksReader) (address string, err error) {
	methods := from.next(int(from.next(2)[1]))
	if from.err == nil && !(p.mayUse(client.RemoteAddr().String()) && slices.Contains(methods, socksNoAuth)) {
		return "", &socksError{socksNoneWillDo, "this proxy is not for " + client.RemoteAddr().String() + ", or it wants to authenticate itself"}
	}
	if _, err := client.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return "", err
	}
	request := from.next(4)
	host, err := socksHost(from, request[3])
	port := binary.BigEndian.Uint16(from.next(2))
	if err = cmp.Or(from.err, err); err != nil {
		return "", err
	}
	address = net.JoinHostPort(host, strconv.Itoa(int(port)))
	switch {
	case request[0] != socksVersion:
		err = &socksError{socksFailed, "another version in the request"}
	case request[1] != socksConnect:
		err = &socksError{socksNoCommand, "CONNECT alone is done: neither UDP nor BIND"}
	case host == "":
		err = &socksError{socksNoHost, "no name"}
	case port < 1024 && !slices.Contains([]uint16{22, 80, 443}, port):
		err = &socksError{socksNotAllowed, "allowed are the ports 22, 80, 443 and those from 1024"}
	}
	return address, err
}

// socksHost reads a request's host.
func socksHost(from *socksReader, kind byte) (string, error) {
	switch kind {
	case socksIPv4:
		return netip.AddrFrom4([4]byte(from.next(4))).String(), nil
	case socksIPv6:
		return netip.AddrFrom16([16]byte(from.next(16))).Unmap().String(), nil
	case socksName:
		return string(from.next(int(from.next(1)[0]))), nil
	}
	return "", &socksError{socksNoAddressType, fmt.Sprintf("no address is of type %d", kind)}
}

// socksReply answers a request; at is the end of the connection that was made.
func socksReply(reply byte, at net.Addr) []byte {
	if reply == socksNoneWillDo {
		return []byte{socksVersion, reply}
	}
	address := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if tcp, ok := at.(*net.TCPAddr); ok {
		address = tcp.AddrPort()
	}
	kind := byte(socksIPv4)
	if host := address.Addr().Unmap(); host.Is6() {
		kind = socksIPv6
	}
	said := append([]byte{socksVersion, reply, 0, kind}, address.Addr().Unmap().AsSlice()...)
	return binary.BigEndian.AppendUint16(said, address.Port())
}

// socksReplyTo tells a client why there is no connection.
func socksReplyTo(err error) byte {
	refused := &socksError{}
	switch {
	case errors.As(err, &refused):
		return refused.reply
	case errors.Is(err, errLoop):
		return socksNotAllowed
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ENETDOWN):
		return socksNoNetwork
	case errors.As(err, new(*net.DNSError)), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, context.DeadlineExceeded):
		return socksNoHost
	}
	return socksFailed
}
