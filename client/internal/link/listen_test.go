package link

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

// fullListener listens on an address with a full queue. Later clients get no answer.
func fullListener(t *testing.T, address, port string) string {
	t.Helper()
	number, err := strconv.Atoi(port)
	testkit.OK(t, err)
	at := &unix.SockaddrInet4{Port: number, Addr: netip.MustParseAddr(address).As4()}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testkit.OK(t, err)
	t.Cleanup(func() { unix.Close(socket) })
	testkit.OK(t, unix.Bind(socket, at))
	testkit.OK(t, unix.Listen(socket, 0))
	for range 2 {
		filler, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		testkit.OK(t, err)
		t.Cleanup(func() { unix.Close(filler) })
		_ = unix.Connect(filler, at) // The kernel continues to connect.
	}
	return address
}

// listening returns a port of TCP at which somebody listens until the end of the test.
func listening(t *testing.T, address string) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", address+":0")
	testkit.OK(t, err)
	t.Cleanup(func() { listener.Close() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}
