package link

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// A name server of the test: it answers every question for an A record with
// 127.0.0.1, and others with nothing.
func startNameServer(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			// RFC 1035, 4.1: a header of 12 bytes, then the question, whose
			// name ends in an empty label, then type and class.
			question := buffer[12:n]
			end := strings.IndexByte(string(question), 0) + 5
			question = question[:end]
			answer := append([]byte(nil), buffer[:2]...)
			isA := binary.BigEndian.Uint16(question[end-4:]) == 1
			count := byte(0)
			if isA {
				count = 1
			}
			answer = append(answer, 0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0)
			answer = append(answer, question...)
			if isA {
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
			}
			conn.WriteTo(answer, from)
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func TestADialerAsksItsNameServers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	d := Dialer{Device: "lo", NameServers: []netip.AddrPort{startNameServer(t)}}
	conn, err := d.Dial(t.Context(), "anything.example:"+port)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestParseNameServer(t *testing.T) {
	for text, want := range map[string]string{"192.168.1.1": "192.168.1.1:53", "192.168.1.1:5353": "192.168.1.1:5353", "fd00::1": "[fd00::1]:53", "[fd00::1]:5": "[fd00::1]:5"} {
		if got, err := ParseNameServer(text); err != nil || got.String() != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "dns.example", "1.2.3.4:port"} {
		if _, err := ParseNameServer(text); err == nil || !strings.Contains(err.Error(), "is not a name server") {
			t.Errorf("%q gives %v", text, err)
		}
	}
}
