package socks

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

const (
	hello   = "\x05\x01\x00"
	welcome = "\x05\x00"
	nowhere = "\x00\x01\x00\x00\x00\x00\x00\x00"
)

func TestAClientThatIsNotAllowed(t *testing.T) {
	client, far := net.Pipe()
	defer client.Close()
	go io.Copy(io.Discard, client)
	_, _, err := Request(&farAway{far}, strings.NewReader(hello+"\x05\x01"+nowhere), false)
	testkit.Holds(t, err != nil && strings.Contains(err.Error(), "not for 192.0.2.7:99"), err)
}

// farAway is a connection with another machine.
type farAway struct{ net.Conn }

func (*farAway) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 99} }

func FuzzRequest(f *testing.F) {
	f.Add(hello + "\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb")
	f.Add(hello + "\x05\x01\x00\x03\x0bexample.org\x01\xbb")
	f.Add(hello + "\x05\x03\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x01\xbb")
	f.Fuzz(func(t *testing.T, said string) {
		conn := &scripted{}
		command, address, err := Request(conn, strings.NewReader(said), true)
		if err != nil {
			return
		}
		host, _, err := net.SplitHostPort(address)
		testkit.Holds(t, err == nil && (command != Connect || host != "") && conn.String() == welcome, said, address, err, conn.String())
	})
}

// scripted is a connection of this machine that keeps what is written to it.
type scripted struct {
	net.Conn
	bytes.Buffer
}

func (s *scripted) Write(b []byte) (int, error) { return s.Buffer.Write(b) }
func (s *scripted) Read(b []byte) (int, error)  { return s.Buffer.Read(b) }
func (*scripted) RemoteAddr() net.Addr          { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 99} }
