package link

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// echo serves TLS with a handshake longer than a segment, and echoes what it receives.
func echo(t *testing.T, listener net.Listener) {
	config := &tls.Config{Certificates: []tls.Certificate{testkit.LongCertificate()}}
	var running sync.WaitGroup
	ctx, end := context.WithCancel(context.Background())
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { conn.Close() })
			running.Go(func() {
				secure := tls.Server(conn, config)
				io.Copy(secure, secure)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		end()
		listener.Close()
		running.Wait()
	})
}

// exchangeOver sends bytes there and back over TLS, and returns the address family.
func exchangeOver(ctx context.Context, d Dialer, address string) (family string, err error) {
	conn, err := d.Dial(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := secure.HandshakeContext(ctx); err != nil {
		return "", err
	}
	content := noise(100_000)
	go secure.Write(content)
	if _, err := io.ReadFull(secure, make([]byte, len(content))); err != nil {
		return "", err
	}
	if conn.RemoteAddr().(*net.TCPAddr).IP.To4() != nil {
		return IPv4, nil
	}
	return IPv6, nil
}

// A path-MTU black hole in one family costs one or two seconds, and nothing the next time.
func TestAPathMTUBlackHoleIsAvoided(t *testing.T) { goAround(t, true) }

func TestAPathMTUBlackHoleOnTheWayOutIsAvoided(t *testing.T) { goAround(t, false) }

func goAround(t *testing.T, towards bool) {
	if testkit.Again(t) {
		return
	}
	v4, v6 := testkit.Lay(t, towards)
	echo(t, v4)
	echo(t, v6)
	for took := time.Hour; took > attemptDelay/5; { // The bridges learn the addresses.
		start := time.Now()
		conn, err := net.DialTimeout("tcp", "["+testkit.Far6+"]:443", time.Second)
		if took = time.Since(start); err == nil {
			conn.Close()
		} else {
			time.Sleep(attemptDelay / 5) // An attempt may be refused at once.
			took = time.Hour
		}
	}
	both := serve(t, "127.0.0.1", zone{a: []string{testkit.Far4}, aaaa: []string{testkit.Far6}, ttl: 60})
	only6 := serve(t, "127.0.0.1", zone{aaaa: []string{testkit.Far6}, ttl: 60})
	of := func(s *nameServerOf) Dialer {
		return Dialer{Device: "near", NameServers: []netip.AddrPort{s.address}, Memory: new(Memory)}
	}
	look := func(name string, d Dialer, address, want string, limit time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		family, err := exchangeOver(ctx, d, address)
		if took := time.Since(start); family != want || err != nil || took > limit {
			t.Errorf("%s: %s, %v after %v", name, family, err, took)
		}
	}
	d := of(both)
	look("two families", d, host+":443", IPv4, 3*leastSilence)
	look("two families, again", d, host+":443", IPv4, leastSilence)
	look("a hole that is known", d, "["+testkit.Far6+"]:443", IPv6, leastSilence)
	d = of(both)
	d.Family = IPv4
	look("the family without a hole", d, host+":443", IPv4, leastSilence)
	d = of(only6)
	look("one family", d, host+":443", IPv6, 2*smallAfter*leastSilence)
	look("one family, again", d, host+":443", IPv6, leastSilence)

	// With a literal address the first attempt times out, and the next one works.
	d = of(only6)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := exchangeOver(ctx, d, "["+testkit.Far6+"]:443"); err == nil {
		t.Error("there is no hole")
	}
	look("an address, again", d, "["+testkit.Far6+"]:443", IPv6, leastSilence)
	if d.Memory.Moved(); d.Memory.way(netip.MustParseAddr(testkit.Far6), 443).small {
		t.Error("the hole is remembered in another network")
	}
}
