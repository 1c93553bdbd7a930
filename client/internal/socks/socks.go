// Package socks serves SOCKS5 (RFC 1928), for programs that want a connection
// and tell nobody what for: without authentication, CONNECT only. UDP ASSOCIATE
// and BIND are refused, and so are ports below 1024 but those of SSH and the web.
// Who uses the package makes the connections.
package socks

import (
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
)

const (
	version = 5
	noAuth  = 0
	connect = 1
	ipv4    = 1
	name    = 3
	ipv6    = 4
)

// A Reply answers a request (RFC 1928, section 6).
type Reply byte

// NoneWillDo answers what comes before a request, the client's methods.
const (
	Done Reply = iota
	Failed
	NotAllowed
	NoNetwork
	NoHost
	ConnectionRefused
	_
	NoCommand
	NoAddressType
	NoneWillDo Reply = 0xff
)

// refusal is the error of a request that is refused.
type refusal struct {
	reply Reply
	why   string
}

func (e *refusal) Error() string { return "SOCKS: " + e.why }

// Request agrees with a client on how to go on, and reads to where it wants to
// be connected: from is what the client says. isAllowed tells whether the server
// is for this client at all.
func Request(client net.Conn, from io.Reader, isAllowed bool) (address string, err error) {
	r := &reader{Reader: from}
	methods := r.next(int(r.next(2)[1]))
	if r.err == nil && !(isAllowed && slices.Contains(methods, noAuth)) {
		return "", &refusal{NoneWillDo, "this proxy is not for " + client.RemoteAddr().String() + ", or it wants to authenticate itself"}
	}
	if _, err := client.Write([]byte{version, noAuth}); err != nil {
		return "", err
	}
	request := r.next(4)
	host, err := r.host(request[3])
	port := binary.BigEndian.Uint16(r.next(2))
	if err = cmp.Or(r.err, err); err != nil {
		return "", err
	}
	address = net.JoinHostPort(host, strconv.Itoa(int(port)))
	switch {
	case request[0] != version:
		err = &refusal{Failed, "another version in the request"}
	case request[1] != connect:
		err = &refusal{NoCommand, "CONNECT alone is done: neither UDP nor BIND"}
	case host == "":
		err = &refusal{NoHost, "no name"}
	case port < 1024 && !slices.Contains([]uint16{22, 80, 443}, port):
		err = &refusal{NotAllowed, "allowed are the ports 22, 80, 443 and those from 1024"}
	}
	return address, err
}

// reader reads what a client says until something is missing.
type reader struct {
	io.Reader
	err error
}

// next returns so many bytes, which mean something unless there is an error.
func (r *reader) next(n int) []byte {
	b := make([]byte, n)
	if r.err == nil {
		_, r.err = io.ReadFull(r, b)
	}
	return b
}

// host reads a request's host.
func (r *reader) host(kind byte) (string, error) {
	switch kind {
	case ipv4:
		return netip.AddrFrom4([4]byte(r.next(4))).String(), nil
	case ipv6:
		return netip.AddrFrom16([16]byte(r.next(16))).Unmap().String(), nil
	case name:
		return string(r.next(int(r.next(1)[0]))), nil
	}
	return "", &refusal{NoAddressType, fmt.Sprintf("no address is of type %d", kind)}
}

// Answer answers a request; at is the end of the connection that was made, nil
// where none was.
func Answer(client io.Writer, reply Reply, at net.Addr) error {
	said := []byte{version, byte(reply)}
	if reply != NoneWillDo {
		address := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		if tcp, ok := at.(*net.TCPAddr); ok {
			address = tcp.AddrPort()
		}
		kind := byte(ipv4)
		if address.Addr().Unmap().Is6() {
			kind = ipv6
		}
		said = append(append(said, 0, kind), address.Addr().Unmap().AsSlice()...)
		said = binary.BigEndian.AppendUint16(said, address.Port())
	}
	_, err := client.Write(said)
	return err
}

// ReplyTo tells a client why there is no connection.
func ReplyTo(err error) Reply {
	refused := &refusal{}
	switch {
	case errors.As(err, &refused):
		return refused.reply
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectionRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ENETDOWN):
		return NoNetwork
	case errors.As(err, new(*net.DNSError)), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, context.DeadlineExceeded):
		return NoHost
	}
	return Failed
}
