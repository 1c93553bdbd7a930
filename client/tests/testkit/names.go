package testkit

import (
	"net"
	"net/netip"
	"testing"
)

// Names starts a name server (RFC 1035 4), and returns its address. Every name has these addresses.
func Names(t *testing.T, addresses ...string) (server string) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		question := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			end := 12
			for end < n && question[end] != 0 {
				end += 1 + int(question[end])
			}
			if end += 5; end > n {
				continue
			}
			reply := append([]byte(nil), question[:end]...)
			reply[2], reply[3] = 0x84, 0 // An authoritative answer.
			copy(reply[6:12], make([]byte, 6))
			for _, address := range addresses {
				bytes := netip.MustParseAddr(address).AsSlice()
				kind := map[int]byte{4: 1, 16: 28}[len(bytes)] // A and AAAA.
				if question[end-3] == kind {
					reply[7]++
					reply = append(reply, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, byte(len(bytes)))
					reply = append(reply, bytes...)
				}
			}
			_, _ = conn.WriteTo(reply, from)
		}
	}()
	return conn.LocalAddr().String()
}
