// Package socks serves SOCKS5 (RFC 1928) for programs that only want a connection: without
// authentication, CONNECT only. It refuses UDP ASSOCIATE and BIND, and ports below 1024 except
// those of SSH and the web. The caller makes the connections.
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

// A Reply answers a request (RFC 1928 6).
type Reply byte

// NoneWillDo answers an offer of authentication methods.
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

// refusal is the error of a refused request.
type refusal struct {
	reply Reply
	why   string
}

func (e *refusal) Error() string { return "SOCKS: " + e.why }

// Request negotiates with a client, and reads from from the address to connect to. isAllowed is false
// if the client may not use the server.
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

// reader reads from a client until bytes are missing.
type reader struct {
	io.Reader
	err error
}

// next returns so many bytes. They are valid if there is no error.
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

// Answer sends a reply. at is the local address of the connection that was made, nil without one.
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

// ReplyTo returns the reply for an error.
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
