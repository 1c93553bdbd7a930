package link

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A name server of the test: it answers every question for an A record with
// 127.0.0.1, and others with nothing.
func startNameServer(t *testing.T) netip.AddrPort { return startServerWithCode(t, 0) }

// One whose answers have a response code (RFC 1035 4.1.1).
func startServerWithCode(t *testing.T, code byte) netip.AddrPort {
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
			// RFC 1035 4.1: a header of 12 bytes, then the question, whose
			// name ends in an empty label, then type and class.
			question := buffer[12:n]
			end := strings.IndexByte(string(question), 0) + 5
			question = question[:end]
			answer := append([]byte(nil), buffer[:2]...)
			isA := binary.BigEndian.Uint16(question[end-4:]) == 1 && code == 0
			count := byte(0)
			if isA {
				count = 1
			}
			answer = append(answer, 0x81, 0x80|code, 0, 1, 0, count, 0, 0, 0, 0)
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

// A name server of the machine itself is reached, though through no device.
func TestALoopbackNameServerIsAskedWithoutTheDevice(t *testing.T) {
	d := Dialer{Device: "nodevice", NameServers: []netip.AddrPort{startNameServer(t)}}
	if found, err := d.resolver("none", &askedServers{}).LookupNetIP(t.Context(), "ip4", "anything.example"); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestSystemdsNameServersAreAskedThroughTheDevice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	for _, test := range []struct {
		text string
		want []string
	}{
		{"# by systemd-resolved\n\nnameserver 192.0.2.1\nnameserver fe80::1%lo\nsearch nameserver\nnameserver\nnameserver x\n",
			[]string{"192.0.2.1:53", "[fe80::1%lo]:53"}},
		{"nameserver 127.0.0.1\n", nil},
		{"nameserver 127.0.0.1\nnameserver 127.0.0.2\n", nil},
		{"", nil},
	} {
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		conn, err := Dialer{Device: "lo"}.resolver(file, &askedServers{}).Dial(t.Context(), "udp", "127.0.0.53:53")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		var got []string
		if group, ok := conn.(*serverGroup); ok {
			for _, s := range group.servers {
				got = append(got, s.String())
			}
		} else if remote := conn.RemoteAddr().String(); remote != "127.0.0.53:53" {
			t.Errorf("%q: %s is asked", test.text, remote)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %v are asked, want %v", test.text, got, test.want)
		}
	}
}

// Of several name servers some cannot be reached through a link, and some
// refuse who comes through it.
func TestAllNameServersAreAskedAtOnce(t *testing.T) {
	const serverFailure, refused = 2, 5
	dead, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	mute := dead.LocalAddr().(*net.UDPAddr).AddrPort()
	unreachable := netip.MustParseAddrPort("192.0.2.1:53")
	refusing, failing, good := startServerWithCode(t, refused), startServerWithCode(t, serverFailure), startNameServer(t)
	lookup := func(servers ...netip.AddrPort) ([]netip.Addr, error) {
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return Dialer{Device: "lo"}.askAll(ctx, servers)
		}}
		return r.LookupNetIP(t.Context(), "ip4", "anything.example.")
	}
	if found, err := lookup(mute, refusing, failing, unreachable, good); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := lookup(refusing, failing); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("all refuse, and the error is %v", err)
	}
	if _, err := (Dialer{Device: "nodevice"}).askAll(t.Context(), nil); err == nil {
		t.Error("a device that does not exist is asked through")
	}
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
