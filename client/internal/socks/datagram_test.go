package socks

import (
	"bytes"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestWhatDatagramsAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ said, why string }{
		"a fragment":         {"\x00\x00\x01\x01\x0a\x00\x00\x01\x01\xbbpart", "fragment"},
		"the last fragment":  {"\x00\x00\x81\x01\x0a\x00\x00\x01\x01\xbbpart", "fragment"},
		"mail":               {"\x00\x00\x00\x01\x0a\x00\x00\x01\x00\x19x", "port 25: allowed are [53 123 443] and those from 1024"},
		"many hosts":         {"\x00\x00\x00\x01\xe0\x00\x00\xfb\x14\xe9x", "224.0.0.251 is not one host"},
		"many hosts of IPv6": {"\x00\x00\x00\x04\xff\x02" + strings.Repeat("\x00", 13) + "\xfb\x14\xe9x", "ff02::fb is not one host"},
		"all hosts":          {"\x00\x00\x00\x01\xff\xff\xff\xff\x14\xe9x", "255.255.255.255 is not one host"},
		"no host":            {"\x00\x00\x00\x01\x00\x00\x00\x00\x14\xe9x", "0.0.0.0 is not one host"},
		"no name":            {"\x00\x00\x00\x03\x00\x14\xe9x", "no name"},
		"a strange address":  {"\x00\x00\x00\x09\x0a\x00\x00\x01\x01\xbbx", "no address is of type 9"},
		"half a header":      {"\x00\x00\x00\x01\x0a\x00", "EOF"},
		"nothing":            {"", "EOF"},
	} {
		address, payload, err := ParseDatagram([]byte(test.said))
		testkit.Holds(t, err != nil && strings.Contains(err.Error(), test.why) && address == "" && payload == nil, name, address, payload, err, test.why)
	}
}

func FuzzParseDatagram(f *testing.F) {
	f.Add("\x00\x00\x00\x01\x0a\x00\x00\x01\x01\xbbquestion")
	f.Add("\x00\x00\x00\x03\x0bexample.org\x00\x35question")
	f.Add("\x00\x00\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x01\xbb")
	f.Fuzz(func(t *testing.T, said string) {
		address, payload, err := ParseDatagram([]byte(said))
		if err != nil {
			return
		}
		testkit.Holds(t, strings.HasSuffix(said, string(payload)), said, payload)
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return // A name.
		}
		again, rest, err := ParseDatagram(Datagram(to, payload))
		testkit.Holds(t, err == nil && again == address && bytes.Equal(rest, payload), address, payload, again, rest, err)
	})
}

func TestFramedDatagrams(t *testing.T) {
	var stream bytes.Buffer
	f := &Framed{&stream, &stream}
	buffer := make([]byte, MaxDatagram)
	sizes := []int{0, 1, 1200, MaxDatagram}
	for _, size := range append(sizes, MaxDatagram+1) {
		if n, err := f.Write(bytes.Repeat([]byte{byte(size)}, size)); n != size || err != nil {
			t.Fatal(size, n, err)
		}
	}
	for _, size := range sizes {
		n, err := f.Read(buffer)
		testkit.Holds(t, err == nil && bytes.Equal(buffer[:n], bytes.Repeat([]byte{byte(size)}, size)), size, n, err)
	}
	if _, err := f.Read(buffer); err != io.EOF {
		t.Errorf("%v, want the end: a datagram that is too large is lost", err)
	}
	stream.WriteString("\x00\x05half")
	if _, err := f.Read(buffer); err != io.ErrUnexpectedEOF {
		t.Errorf("%v, want an end within a datagram", err)
	}
}
