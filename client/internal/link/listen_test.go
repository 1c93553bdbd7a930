package link

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// fullListener listens on an address with a full queue. Later clients get no answer.
func fullListener(t *testing.T, address, port string) string {
	t.Helper()
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	at := &unix.SockaddrInet4{Port: number, Addr: netip.MustParseAddr(address).As4()}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(socket) })
	if err := unix.Bind(socket, at); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		filler, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(filler) })
		_ = unix.Connect(filler, at) // The kernel continues to connect.
	}
	return address
}

// listening returns a port of TCP at which somebody listens until the end of the test.
func listening(t *testing.T, address string) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}
