package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/socks"
	"github.com/linklab/linklab/client/tests/testkit"
)

const anyPort = "\x00\x01\x00\x00\x00\x00\x00\x00"

// echo starts a server that returns each datagram with its sender's port.
func echo(t *testing.T) netip.AddrPort {
	t.Helper()
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.OK(t, err)
	t.Cleanup(func() { server.Close() })
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, from, err := server.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort(fmt.Appendf(nil, "%s from %d", buffer[:n], from.Port()), from)
		}
	}()
	return netip.MustParseAddrPort(server.LocalAddr().String())
}

// request asks the proxy for a command, and returns the TCP connection and the address in the reply.
func request(t *testing.T, proxy, command string) (*net.TCPConn, string) {
	t.Helper()
	conn, err := net.Dial("tcp", proxy)
	testkit.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(conn, socksHello+command)
	said := make([]byte, len(socksWelcome)+4+4+2)
	if _, err := io.ReadFull(conn, said); err != nil || !strings.HasPrefix(string(said), socksWelcome+"\x05\x00\x00\x01") {
		t.Fatalf("the answer is %q, %v", said, err)
	}
	port := netip.AddrPortFrom(netip.AddrFrom4([4]byte(said[6:10])), uint16(said[10])<<8|uint16(said[11]))
	return conn.(*net.TCPConn), port.String()
}

// associated asks for an association, and returns its TCP connection and a socket to it.
func associated(t *testing.T, proxy string) (*net.TCPConn, *net.UDPConn) {
	t.Helper()
	tcp, at := request(t, proxy, "\x05\x03"+anyPort)
	return tcp, socketTo(t, at)
}

func socketTo(t *testing.T, address string) *net.UDPConn {
	t.Helper()
	conn, err := net.Dial("udp", address)
	testkit.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}

// answer returns what arrives at a socket within the time, "" if nothing does.
func answer(t *testing.T, conn *net.UDPConn, within time.Duration) string {
	t.Helper()
	buffer := make([]byte, 1<<16)
	conn.SetReadDeadline(time.Now().Add(within))
	n, err := conn.Read(buffer)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return string(buffer[:n])
}

// asked sends a datagram until there is an answer from the address, and returns its payload.
func asked(t *testing.T, conn *net.UDPConn, said []byte, from netip.AddrPort) string {
	t.Helper()
	for range 20 {
		conn.Write(said)
		if got := answer(t, conn, 500*time.Millisecond); got != "" {
			header := string(socks.Datagram(from, nil))
			if !strings.HasPrefix(got, header) {
				t.Fatalf("the answer is %q, want one from %s", got, from)
			}
			return strings.TrimPrefix(got, header)
		}
	}
	t.Fatal("no answer")
	return ""
}

func TestDatagramsOfAnAssociation(t *testing.T) {
	server := echo(t)
	address, counts := start(t, nil, nil)
	_, conn := associated(t, address)
	large := strings.Repeat("x", 20_000)
	first := asked(t, conn, socks.Datagram(server, []byte("question")), server)
	port, ok := strings.CutPrefix(first, "question from ")
	if !ok {
		t.Fatalf("the answer is %q", first)
	}
	testkit.Same(t, asked(t, conn, socks.Datagram(server, []byte(large)), server), large+" from "+port)
	// A name, which the proxy resolves. The server sees the same port as before.
	named := append([]byte{0, 0, 0, 3, 9}, "localhost"...)
	named = append(named, byte(server.Port()>>8), byte(server.Port()))
	testkit.Same(t, asked(t, conn, append(named, "again"...), server), "again from "+port, port)
	n, _ := counts.Load("wifi")
	if least := quantity.Bytes(len(large)); n == nil || n.(quantity.Bytes) < least {
		t.Errorf("%v bytes are counted, want at least %d", n, least)
	}
}

// The relay of linklab turns a client's UDP into this, to pass what lies between by TCP.
func TestFramedAssociation(t *testing.T) {
	server := echo(t)
	address, _ := start(t, nil, nil)
	tcp, _ := request(t, address, "\x05\x83"+anyPort)
	framed := &socks.Framed{From: tcp, To: tcp}
	buffer := make([]byte, socks.MaxDatagram)
	for _, question := range []string{"question", strings.Repeat("x", 20_000)} {
		framed.Write(socks.Datagram(server, []byte(question)))
		n, err := framed.Read(buffer)
		if err != nil || !strings.HasPrefix(string(buffer[:n]), string(socks.Datagram(server, []byte(question)))) {
			t.Fatalf("the answer is %.100q, %v", buffer[:n], err)
		}
	}
}

// A client that does not read its answers stops nobody, and leaves nothing behind.
func TestAFramedClientThatDoesNotRead(t *testing.T) {
	server := echo(t)
	address, _ := start(t, nil, nil)
	tcp, _ := request(t, address, "\x05\x83"+anyPort)
	framed := &socks.Framed{From: tcp, To: tcp}
	for range 1000 {
		framed.Write(socks.Datagram(server, bytes.Repeat([]byte("x"), 20_000)))
	}
	tcp.Close()
	_, conn := associated(t, address)
	asked(t, conn, socks.Datagram(server, []byte("question")), server)
}

func TestDatagramsThatAreNotRelayed(t *testing.T) {
	server := echo(t)
	address, _ := start(t, nil, nil)
	_, conn := associated(t, address)
	good := socks.Datagram(server, []byte("good"))
	fragment := bytes.Clone(good)
	fragment[2] = 1
	for name, said := range map[string][]byte{
		"a fragment":     fragment,
		"no header":      []byte("hello"),
		"nothing":        {},
		"a low port":     socks.Datagram(netip.AddrPortFrom(server.Addr(), 19), []byte("x")),
		"no such name":   append([]byte{0, 0, 0, 3, 7}, "invalid\x14\xe9x"...),
		"all neighbours": socks.Datagram(netip.MustParseAddrPort("255.255.255.255:5353"), []byte("x")),
	} {
		conn.Write(said)
		testkit.Same(t, answer(t, conn, 100*time.Millisecond), "", name)
	}
	asked(t, conn, good, server)
}

// Other programs of the machine cannot use the client's socket: neither one that sends later, nor one
// that sends before a client that named its port.
func TestDatagramsOfOthersAreNotRelayed(t *testing.T) {
	server := echo(t)
	address, _ := start(t, nil, nil)
	good := socks.Datagram(server, []byte("good"))
	_, conn := associated(t, address)
	asked(t, conn, good, server)
	other := socketTo(t, conn.RemoteAddr().String())
	other.Write(good)
	testkit.Same(t, answer(t, other, 200*time.Millisecond)+answer(t, conn, 200*time.Millisecond), "")

	own, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.OK(t, err)
	port := portOf(own.LocalAddr().String())
	own.Close()
	_, at := request(t, address, "\x05\x03"+toPort(port))
	early := socketTo(t, at)
	early.Write(good)
	testkit.Same(t, answer(t, early, 200*time.Millisecond), "")
	named, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)}, early.RemoteAddr().(*net.UDPAddr))
	testkit.OK(t, err)
	defer named.Close()
	asked(t, named, good, server)
}

func TestAnAssociationEndsWithItsConnection(t *testing.T) {
	server := echo(t)
	address, _ := start(t, nil, nil)
	tcp, conn := associated(t, address)
	good := socks.Datagram(server, []byte("good"))
	asked(t, conn, good, server)
	tcp.Close()
	for range 100 {
		conn.Write(good)
		conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 100)); errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
	}
	t.Error("the socket is still open")
}

// An association that is open when the proxy ends, ends too: start waits for that.
func TestAssociationsAreBounded(t *testing.T) {
	address, _ := start(t, nil, nil)
	var open []*net.TCPConn
	for range mostAssociations {
		tcp, _ := associated(t, address)
		open = append(open, tcp)
	}
	for _, command := range []string{"\x05\x03", "\x05\x83"} {
		testkit.Same(t, ask(t, address, socksHello+command+anyPort), socksWelcome+"\x05\x01"+nowhere)
	}
	open[0].Close()
	for range 100 {
		if got := ask(t, address, socksHello+"\x05\x03"+anyPort); strings.HasPrefix(got, socksWelcome+"\x05\x00") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("no room came free")
}

func TestAnAssociationMovesToALinkThatWorks(t *testing.T) {
	for _, failure := range []error{syscall.ENETUNREACH, syscall.ENETDOWN} {
		t.Run(failure.Error(), func(t *testing.T) {
			server := echo(t)
			var mu sync.Mutex
			var fails bool
			address, counts := start(t, nil, func(o *Options) {
				open := o.Engine.Links[0].Packets
				o.Engine.Links[0].Packets = func(ctx context.Context) (link.PacketSocket, error) {
					socket, err := open(ctx)
					return &failing{socket, &mu, &fails, failure}, err
				}
			})
			_, conn := associated(t, address)
			before := asked(t, conn, socks.Datagram(server, []byte("x")), server)
			mu.Lock()
			fails = true
			mu.Unlock()
			if after := asked(t, conn, socks.Datagram(server, []byte("x")), server); after == before {
				t.Errorf("the datagrams still come %s", after)
			}
			if n, _ := counts.Load("lte"); n == nil {
				t.Error("nothing is counted for the other link")
			}
		})
	}
}

// A device without a carrier takes datagrams and loses them, so an association does not use it.
func TestAnAssociationAvoidsADeviceThatIsNotRunning(t *testing.T) {
	server := echo(t)
	address, counts := start(t, nil, func(o *Options) { o.Engine.Links[0].Device = "nodevice" })
	_, conn := associated(t, address)
	asked(t, conn, socks.Datagram(server, []byte("x")), server)
	if n, _ := counts.Load("lte"); n == nil {
		t.Error("the association does not use the link that runs")
	}
}

// failing is a socket that fails to send while fails is set.
type failing struct {
	link.PacketSocket
	mu    *sync.Mutex
	fails *bool
	err   error
}

func (f *failing) Send(ctx context.Context, payload []byte, address string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *f.fails {
		return f.err
	}
	return f.PacketSocket.Send(ctx, payload, address)
}
