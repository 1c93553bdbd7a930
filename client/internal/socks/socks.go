// Package socks speaks SOCKS5 (RFC 1928) as its server, without authentication: CONNECT and UDP
// ASSOCIATE, but not BIND. It refuses ports below 1024 except those of a few services. The caller
// makes the connections and opens the sockets.
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
	ipv4    = 1
	name    = 3
	ipv6    = 4
)

// A Command is what a client asks for. AssociateFramed is not of RFC 1928: the datagrams of the
// association are sent over its TCP connection (see Framed).
type Command byte

// The commands that are served.
const (
	Connect         Command = 1
	Associate       Command = 3
	AssociateFramed Command = 0x83
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

// Request negotiates with a client, and reads its command and address from from. The address of an
// association is the one from which the client expects to send. isAllowed is false if the client may
// not use the server.
func Request(client net.Conn, from io.Reader, isAllowed bool) (command Command, address string, err error) {
	r := &reader{Reader: from}
	methods := r.next(int(r.next(2)[1]))
	if r.err == nil && !(isAllowed && slices.Contains(methods, noAuth)) {
		return 0, "", &refusal{NoneWillDo, "this proxy is not for " + client.RemoteAddr().String() + ", or it wants to authenticate itself"}
	}
	if _, err := client.Write([]byte{version, noAuth}); err != nil {
		return 0, "", err
	}
	request := r.next(3)
	host, port, err := r.address()
	if err = cmp.Or(r.err, err); err != nil {
		return 0, "", err
	}
	command = Command(request[1])
	address = net.JoinHostPort(host, strconv.Itoa(int(port)))
	switch {
	case request[0] != version:
		return 0, "", &refusal{Failed, "another version in the request"}
	case command == Associate || command == AssociateFramed:
		return command, address, nil
	case command != Connect:
		return 0, "", &refusal{NoCommand, "CONNECT and UDP ASSOCIATE alone are done"}
	}
	return command, address, check(host, port, connectPorts)
}

// connectPorts and datagramPorts are the ports below 1024 that clients may use.
var (
	connectPorts  = []uint16{22, 80, 443}
	datagramPorts = []uint16{53, 123, 443}
)

// check refuses hosts without a name, and ports of services that are not for a proxy's clients.
func check(host string, port uint16, low []uint16) error {
	switch {
	case host == "":
		return &refusal{NoHost, "no name"}
	case port < 1024 && !slices.Contains(low, port):
		return &refusal{NotAllowed, fmt.Sprintf("port %d: allowed are %v and those from 1024", port, low)}
	}
	return nil
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

// address reads an address type, a host and a port.
func (r *reader) address() (host string, port uint16, err error) {
	kind := r.next(1)[0]
	switch kind {
	case ipv4:
		host = netip.AddrFrom4([4]byte(r.next(4))).String()
	case ipv6:
		host = netip.AddrFrom16([16]byte(r.next(16))).Unmap().String()
	case name:
		host = string(r.next(int(r.next(1)[0])))
	default:
		err = &refusal{NoAddressType, fmt.Sprintf("no address is of type %d", kind)}
	}
	return host, binary.BigEndian.Uint16(r.next(2)), err
}

// appendAddress appends an address type, an address and a port.
func appendAddress(b []byte, address netip.AddrPort) []byte {
	kind := byte(ipv4)
	if address.Addr().Unmap().Is6() {
		kind = ipv6
	}
	b = append(append(b, kind), address.Addr().Unmap().AsSlice()...)
	return binary.BigEndian.AppendUint16(b, address.Port())
}

// Answer sends a reply. at is the address of the connection or socket that was made, nil without one.
func Answer(client io.Writer, reply Reply, at net.Addr) error {
	said := []byte{version, byte(reply)}
	if reply != NoneWillDo {
		address := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		if own, ok := at.(interface{ AddrPort() netip.AddrPort }); ok {
			address = own.AddrPort()
		}
		said = appendAddress(append(said, 0), address)
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
