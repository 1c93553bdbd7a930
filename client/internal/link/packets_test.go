package link

import (
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestPacketsGoByTheDeviceAlone(t *testing.T) {
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.OK(t, err)
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.LocalAddr().String())
	for family, hosts := range map[string][]string{"": {"127.0.0.1"}, IPv4: {"127.0.0.1", "localhost"}} {
		socket, err := Dialer{Device: "lo", Family: family}.Packets(t.Context())
		testkit.OK(t, err)
		defer socket.Close()
		ports := map[uint16]bool{}
		for _, host := range hosts {
			testkit.OK(t, socket.Send(t.Context(), []byte("question"), net.JoinHostPort(host, port)))
			buffer := make([]byte, 100)
			n, from, err := server.ReadFromUDPAddrPort(buffer)
			if err != nil || string(buffer[:n]) != "question" {
				t.Fatal(string(buffer[:n]), err)
			}
			ports[from.Port()] = true
			server.WriteToUDPAddrPort([]byte("answer"), from)
			n, from, err = socket.Receive(buffer)
			if err != nil || string(buffer[:n]) != "answer" || from != netip.MustParseAddrPort(server.LocalAddr().String()) {
				t.Fatal(string(buffer[:n]), from, err)
			}
		}
		testkit.Same(t, len(ports), 1)
	}
}

// A name may have an address of a family that the link has not, but another link.
func TestPacketsGoToAnAddressOfTheLink(t *testing.T) {
	if testkit.Again(t) {
		return
	}
	for _, words := range []string{
		"link set lo up",
		"link add other type veth peer name peer",
		"link set peer up",
		"link set other up",
		"addr add 2001:db8:1::2/64 nodad dev other",
		"route add default via 2001:db8:1::1 dev other",
	} {
		if out, err := exec.Command("ip", append([]string{"-6"}, strings.Fields(words)...)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v: %s", words, err, out)
		}
	}
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.OK(t, err)
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.LocalAddr().String())
	names := serve(t, "127.0.0.1", zone{a: []string{"127.0.0.1"}, aaaa: []string{"2001:db8::1"}, ttl: 60})
	d := Dialer{Device: "lo", NameServers: []netip.AddrPort{names.address}, Memory: new(Memory)}
	socket, err := d.Packets(t.Context())
	testkit.OK(t, err)
	defer socket.Close()
	testkit.OK(t, socket.Send(t.Context(), []byte("question"), net.JoinHostPort(host, port)))
	buffer := make([]byte, 100)
	server.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, _, err := server.ReadFromUDPAddrPort(buffer); err != nil || string(buffer[:n]) != "question" {
		t.Error(string(buffer[:n]), err)
	}
}

func TestPacketsThatCannotBeSent(t *testing.T) {
	if _, err := (Dialer{Device: "nodevice"}).Packets(t.Context()); err == nil || !strings.Contains(err.Error(), "bind to device nodevice") {
		t.Error(err)
	}
	socket, err := Dialer{Device: "lo", Family: IPv4}.Packets(t.Context())
	testkit.OK(t, err)
	defer socket.Close()
	for address, why := range map[string]string{
		"[::1]:443":       "only IPv4 addresses are",
		"127.0.0.1":       "missing port",
		"127.0.0.1:70000": "value out of range",
	} {
		if err := socket.Send(t.Context(), nil, address); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", address, err, why)
		}
	}
}
