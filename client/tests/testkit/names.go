package testkit

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Names starts a name server, and returns its address. Every name has these addresses.
func Names(t *testing.T, addresses ...string) (server string) {
	t.Helper()
	return Answers(t, func(q dnsmessage.Question) (found []dnsmessage.Resource) {
		for _, text := range addresses {
			if address := netip.MustParseAddr(text); address.Is4() && q.Type == dnsmessage.TypeA {
				found = append(found, Record(q.Name.String(), &dnsmessage.AResource{A: address.As4()}))
			} else if address.Is6() && q.Type == dnsmessage.TypeAAAA {
				found = append(found, Record(q.Name.String(), &dnsmessage.AAAAResource{AAAA: address.As16()}))
			}
		}
		return found
	})
}

// Record is a record of a name.
func Record(name string, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET, TTL: 60}, Body: body}
}

// Answers starts a name server (RFC 1035 4), and returns its address. It is silent where an answer cannot be packed.
func Answers(t *testing.T, answer func(dnsmessage.Question) []dnsmessage.Resource) (server string) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		for buffer := make([]byte, 512); ; {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var p dnsmessage.Parser
			header, err := p.Start(buffer[:n])
			question, wrong := p.Question()
			if err != nil || wrong != nil {
				continue
			}
			reply := dnsmessage.Message{
				Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true},
				Questions: []dnsmessage.Question{question}, Answers: answer(question),
			}
			if packed, err := reply.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}
