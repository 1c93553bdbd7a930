package socks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
)

// MaxDatagram is the largest datagram of an association, with its header.
const MaxDatagram = 1<<16 - 1

// headerLength is the length of an address type, an IPv6 address and a port behind three bytes. No
// header of Datagram is longer.
const headerLength = 3 + 1 + 16 + 2

var errFragment = errors.New("SOCKS: a fragment of a datagram")

// ParseDatagram returns the address to which a client sends a datagram, and the payload (RFC 1928
// 7). It refuses fragments, which RFC 1928 allows.
func ParseDatagram(b []byte) (address string, payload []byte, err error) {
	rest := bytes.NewReader(b)
	r := &reader{Reader: rest}
	reserved := r.next(3)
	host, port, err := r.address()
	switch {
	case r.err != nil:
		return "", nil, r.err
	case err != nil:
		return "", nil, err
	case reserved[2] != 0:
		return "", nil, errFragment
	}
	if err := check(host, port, datagramPorts); err != nil {
		return "", nil, err
	}
	if to, err := netip.ParseAddr(host); err == nil && (to.IsMulticast() || to.IsUnspecified() || to == broadcast) {
		return "", nil, &refusal{NotAllowed, host + " is not one host"}
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), b[len(b)-rest.Len():], nil
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// Datagram returns a datagram for a client, with the address from which the payload came.
func Datagram(from netip.AddrPort, payload []byte) []byte {
	b := make([]byte, 3, headerLength+len(payload))
	return append(appendAddress(b, from), payload...)
}

// Framed sends and receives an association's datagrams over a byte stream. Two bytes with its length
// precede each datagram.
type Framed struct {
	From io.Reader
	To   io.Writer
}

// Read reads a datagram. p must have room for MaxDatagram.
func (f *Framed) Read(p []byte) (int, error) {
	var length [2]byte
	if _, err := io.ReadFull(f.From, length[:]); err != nil {
		return 0, err
	}
	return io.ReadFull(f.From, p[:binary.BigEndian.Uint16(length[:])])
}

// Write sends a datagram. One that is too large for its length is lost, as in a network.
func (f *Framed) Write(p []byte) (int, error) {
	if len(p) > MaxDatagram {
		return len(p), nil
	}
	_, err := f.To.Write(append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(p)), uint16(len(p))), p...))
	return len(p), err
}
