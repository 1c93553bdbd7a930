package link

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestPacketsGoByTheDeviceAlone(t *testing.T) {
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.LocalAddr().String())
	for family, hosts := range map[string][]string{"": {"127.0.0.1"}, IPv4: {"127.0.0.1", "localhost"}} {
		socket, err := Dialer{Device: "lo", Family: family}.Packets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		ports := map[uint16]bool{}
		for _, host := range hosts {
			if err := socket.Send(t.Context(), []byte("question"), net.JoinHostPort(host, port)); err != nil {
				t.Fatal(err)
			}
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
		if len(ports) != 1 {
			t.Errorf("the server saw the ports %v, want one", ports)
		}
	}
}

func TestPacketsThatCannotBeSent(t *testing.T) {
	if _, err := (Dialer{Device: "nodevice"}).Packets(t.Context()); err == nil || !strings.Contains(err.Error(), "bind to device nodevice") {
		t.Error(err)
	}
	socket, err := Dialer{Device: "lo", Family: IPv4}.Packets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
