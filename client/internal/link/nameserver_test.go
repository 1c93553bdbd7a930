package link

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

// zone describes what a test's name server knows, and how it behaves.
type zone struct {
	a, aaaa []string
	ttl     uint32
	// code is the answer to all queries, codeAAAA that for IPv6.
	code, codeAAAA dnsmessage.RCode
	// silent and silentAAAA leave queries unanswered; drop does so a number of times.
	silent, silentAAAA bool
	drop               int
	delay              time.Duration
	// truncated answers by UDP with TC. plain refuses EDNS. spoofed first sends answers with
	// other IDs and questions.
	truncated, plain, spoofed bool
}

// nameServerOf is a running name server. Its zone may change.
type nameServerOf struct {
	address netip.AddrPort
	mu      sync.Mutex
	zone    zone
	asked   atomic.Int32
}

func (s *nameServerOf) set(change func(*zone)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.zone)
}

// listenBoth listens on a port that is free for UDP and TCP.
func listenBoth(t *testing.T, on string) (net.PacketConn, net.Listener) {
	t.Helper()
	for {
		datagrams, err := net.ListenPacket("udp", net.JoinHostPort(on, "0"))
		testkit.OK(t, err)
		streams, err := net.Listen("tcp", datagrams.LocalAddr().String())
		if err == nil {
			return datagrams, streams
		}
		datagrams.Close()
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
}

// serve starts a name server on an address.
func serve(t *testing.T, on string, z zone) *nameServerOf {
	t.Helper()
	datagrams, streams := listenBoth(t, on)
	s := &nameServerOf{address: datagrams.LocalAddr().(*net.UDPAddr).AddrPort(), zone: z}
	var running sync.WaitGroup
	running.Go(func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := datagrams.ReadFrom(buffer)
			if err != nil {
				return
			}
			query := slices.Clone(buffer[:n])
			running.Go(func() {
				for _, answer := range s.answer(query, true) {
					datagrams.WriteTo(answer, from)
				}
			})
		}
	})
	running.Go(func() {
		for {
			conn, err := streams.Accept()
			if err != nil {
				return
			}
			var length [2]byte
			io.ReadFull(conn, length[:])
			query := make([]byte, binary.BigEndian.Uint16(length[:]))
			io.ReadFull(conn, query)
			for _, answer := range s.answer(query, false) {
				conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
			}
			conn.Close()
		}
	})
	t.Cleanup(func() {
		datagrams.Close()
		streams.Close()
		running.Wait()
	})
	return s
}

// realSleep sleeps by the real clock, in a bubble of synctest too.
func realSleep(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for errors.Is(unix.Nanosleep(&left, &left), unix.EINTR) {
	}
}

func (s *nameServerOf) answer(query []byte, datagram bool) (answers [][]byte) {
	s.asked.Add(1)
	s.mu.Lock()
	z := s.zone
	s.zone.drop--
	s.mu.Unlock()
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil || z.silent || z.drop > 0 || z.silentAAAA && q.Type == dnsmessage.TypeAAAA {
		return nil
	}
	realSleep(z.delay) // This server is slow.
	code := z.code
	if q.Type == dnsmessage.TypeAAAA && z.codeAAAA != 0 {
		code = z.codeAAAA
	}
	p.SkipAllQuestions()
	p.SkipAllAnswers()
	p.SkipAllAuthorities()
	if _, err := p.AdditionalHeader(); err == nil && z.plain {
		code = dnsmessage.RCodeFormatError
	}
	build := func(id uint16, q dnsmessage.Question, truncated bool) []byte {
		b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, Response: true, RecursionAvailable: true, RCode: code, Truncated: truncated})
		b.StartQuestions()
		b.Question(q)
		b.StartAnswers()
		if code == 0 && !truncated {
			header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: z.ttl}
			for _, text := range z.a {
				if q.Type == dnsmessage.TypeA {
					b.AResource(header, dnsmessage.AResource{A: netip.MustParseAddr(text).As4()})
				}
			}
			for _, text := range z.aaaa {
				if q.Type == dnsmessage.TypeAAAA {
					b.AAAAResource(header, dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(text).As16()})
				}
			}
		}
		message, err := b.Finish()
		if err != nil {
			panic(err)
		}
		return message
	}
	if z.spoofed {
		evil := q
		evil.Name = dnsmessage.MustNewName("evil.example.")
		code, z.a = 0, []string{"192.0.2.66"}
		answers = append(answers, build(header.ID+1, q, false), build(header.ID, evil, false), query, []byte("x"))
		code, z.a = s.zone.code, s.zone.a
	}
	return append(answers, build(header.ID, q, z.truncated && datagram))
}

func TestServersOfTheMachine(t *testing.T) {
	for _, test := range []struct {
		text, behind string
		want         []string
	}{
		{"# by hand\n\nnameserver 192.0.2.1\nnameserver fe80::1%lo\nsearch nameserver\nnameserver\nnameserver x\nnameserver 192.0.2.1\n", "",
			[]string{"192.0.2.1:53 lo", "[fe80::1%lo]:53 lo"}},
		{"nameserver 127.0.0.1\n", "", []string{"127.0.0.1:53 "}},
		{"", "", []string{"127.0.0.1:53 "}},
		{"nameserver 127.0.0.53\n", "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 127.0.0.1\n",
			[]string{"192.0.2.1:53 lo", "192.0.2.2:53 lo", "127.0.0.53:53 elsewhere"}},
		{"nameserver 127.0.0.53\n", "", []string{"127.0.0.53:53 "}},
		{strings.Repeat("nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n", 2) +
			"nameserver 192.0.2.4\nnameserver 192.0.2.5\nnameserver 192.0.2.6\nnameserver 192.0.2.7\nnameserver 192.0.2.8\nnameserver 192.0.2.9\n", "",
			[]string{"192.0.2.1:53 lo", "192.0.2.2:53 lo", "192.0.2.3:53 lo", "192.0.2.4:53 lo", "192.0.2.5:53 lo", "192.0.2.6:53 lo", "192.0.2.7:53 lo", "192.0.2.8:53 lo"}},
	} {
		n := newNames(Dialer{Device: "lo"})
		n.resolverFile, n.stubFile = filepath.Join(t.TempDir(), "resolv.conf"), filepath.Join(t.TempDir(), "stub.conf")
		for file, text := range map[string]string{n.resolverFile: test.text, n.stubFile: test.behind} {
			testkit.OK(t, os.WriteFile(file, []byte(text), 0o600))
		}
		servers, err := n.servers()
		var got []string
		for _, s := range servers {
			way := s.device
			if s.elsewhere {
				way += "elsewhere"
			}
			got = append(got, s.address.String()+" "+way)
		}
		testkit.Holds(t, err == nil && slices.Equal(got, test.want), test.text, got, test.want, err)
	}
	n := newNames(Dialer{Device: "lo"})
	n.resolverFile = filepath.Join(t.TempDir(), "none")
	if _, err := n.servers(); err == nil || !strings.Contains(err.Error(), "give some with --dns") {
		t.Errorf("without resolv.conf: %v", err)
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
