package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/linklab/linklab/client/tests/testkit"
)

// asking returns names that asks these servers.
func asking(servers ...*nameServerOf) *names {
	d := Dialer{Device: "lo"}
	for _, s := range servers {
		d.NameServers = append(d.NameServers, s.address)
	}
	return newNames(d)
}

const host = "anything.example."

// lookup returns the addresses of the host and the time that the lookup took.
func lookup(t *testing.T, n *names) (found []netip.Addr, took time.Duration, err error) {
	t.Helper()
	start := time.Now()
	found, err = n.lookup(t.Context(), host)
	return found, time.Since(start), err
}

// quick is far below the seconds that a wait for a silent server takes.
const quick = 1500 * time.Millisecond

// A server that is silent, refuses or lies does not delay the answer of one that knows the name.
func TestAServerCostsNothingThatAnotherDoesNot(t *testing.T) {
	good := zone{a: []string{"192.0.2.1"}, ttl: 60}
	// The standard library makes its configuration at the first lookup. Made in a bubble, it could be used
	// nowhere else.
	if _, _, err := lookup(t, asking(serve(t, "127.0.0.1", good))); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		zones []zone
		want  string
		least time.Duration
	}{
		"alone":               {[]zone{good}, "[192.0.2.1]", 0},
		"one dead":            {[]zone{{silent: true}, good}, "[192.0.2.1]", 0},
		"one refuses":         {[]zone{{code: dnsmessage.RCodeRefused}, good}, "[192.0.2.1]", 0},
		"one fails":           {[]zone{{code: dnsmessage.RCodeServerFailure}, good}, "[192.0.2.1]", 0},
		"one is slow":         {[]zone{{a: good.a, delay: 2 * time.Second}, good}, "[192.0.2.1]", 0},
		"one denies":          {[]zone{{code: dnsmessage.RCodeNameError}, {a: good.a, delay: 100 * time.Millisecond}}, "[192.0.2.1]", 0},
		"one has none":        {[]zone{{}, {a: good.a, delay: 100 * time.Millisecond}}, "[192.0.2.1]", 0},
		"AAAA refused":        {[]zone{{a: good.a, codeAAAA: dnsmessage.RCodeRefused}}, "[192.0.2.1]", 0},
		"AAAA fails":          {[]zone{{a: good.a, codeAAAA: dnsmessage.RCodeServerFailure}}, "[192.0.2.1]", 0},
		"AAAA not known":      {[]zone{{a: good.a, codeAAAA: dnsmessage.RCodeNotImplemented}}, "[192.0.2.1]", 0},
		"AAAA silent":         {[]zone{{a: good.a, silentAAAA: true}}, "[192.0.2.1]", resolutionDelay},
		"AAAA silent, a dead": {[]zone{{a: good.a, silentAAAA: true}, {silent: true}}, "[192.0.2.1]", resolutionDelay},
		"a lost query":        {[]zone{{a: good.a, drop: 1}}, "[192.0.2.1]", 0},
		"no EDNS":             {[]zone{{a: good.a, plain: true}}, "[192.0.2.1]", 0},
		"truncated":           {[]zone{{a: good.a, truncated: true}}, "[192.0.2.1]", 0},
		"spoofed":             {[]zone{{a: good.a, spoofed: true}}, "[192.0.2.1]", 0},
		"both families":       {[]zone{{a: good.a, aaaa: []string{"2001:db8::1"}}}, "", 0},
		"four":                {[]zone{{silent: true}, {code: dnsmessage.RCodeRefused}, {code: dnsmessage.RCodeServerFailure}, good}, "[192.0.2.1]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := func(t *testing.T) {
				var servers []*nameServerOf
				for _, z := range test.zones {
					servers = append(servers, serve(t, "127.0.0.1", z))
				}
				found, took, err := lookup(t, asking(servers...))
				limit := quick
				if name == "a lost query" {
					limit += askedAgain
				}
				testkit.Holds(t, err == nil && (test.want == "" || fmt.Sprint(found) == test.want) && took <= limit && took >= test.least, found, err, took)
				testkit.Holds(t, name != "both families" || len(found) == 2, found)
			}
			switch name {
			case "one denies", "one has none", "both families":
				// A busy machine may take longer than betterWait and resolutionDelay. Time stands still in a
				// bubble while the servers wait for packets, so these times never end.
				synctest.Test(t, look)
			default:
				look(t)
			}
		})
	}
}

// If all servers fail or deny the name, the error comes soon and names all of them.
func TestAllFail(t *testing.T) {
	for name, test := range map[string]struct {
		zones    []zone
		notFound bool
		limit    time.Duration
	}{
		"refused":           {[]zone{{code: dnsmessage.RCodeRefused}, {code: dnsmessage.RCodeServerFailure}}, false, quick},
		"denied":            {[]zone{{code: dnsmessage.RCodeNameError}}, true, quick},
		"denied, one dead":  {[]zone{{code: dnsmessage.RCodeNameError}, {silent: true}}, true, quick + betterWait},
		"denied, refused":   {[]zone{{code: dnsmessage.RCodeNameError}, {code: dnsmessage.RCodeRefused}}, true, quick},
		"refused, one dead": {[]zone{{code: dnsmessage.RCodeRefused}, {silent: true}}, false, failedWait + quick},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var servers []*nameServerOf
			for _, z := range test.zones {
				servers = append(servers, serve(t, "127.0.0.1", z))
			}
			_, took, err := lookup(t, asking(servers...))
			failed := new(net.DNSError)
			if !errors.As(err, &failed) || failed.IsNotFound != test.notFound || took > test.limit {
				t.Fatalf("%v after %v", err, took)
			}
			for _, s := range servers {
				testkit.Holds(t, strings.Contains(err.Error(), s.address.String()), err, s.address)
				if asked := s.asked.Load(); asked > 12 { // resolv.conf(5): two queries for each of up to three servers.
					t.Errorf("a server was asked %d times", asked)
				}
			}
		})
	}
}

// A name is resolved again after a minute. If that fails, the old answer is used longer.
func TestAnswersAreRemembered(t *testing.T) {
	s := serve(t, "127.0.0.1", zone{a: []string{"192.0.2.1"}, aaaa: []string{"2001:db8::1"}, ttl: 60})
	n := asking(s)
	look := func(want string, limit time.Duration) {
		t.Helper()
		found, took, err := lookup(t, n)
		testkit.Holds(t, err == nil && strings.Contains(fmt.Sprint(found), want) && took <= limit, found, err, took, want)
	}
	// On a busy machine one family may be answered later than resolutionDelay after the other. It is then
	// left out for a while.
	learn := func(want string) {
		t.Helper()
		testkit.Eventually(t, "both families are answered in time, with "+want, func() bool {
			n.expire() // As if a minute had passed.
			found, _, err := lookup(t, n)
			return err == nil && len(found) == 2 && strings.Contains(fmt.Sprint(found), want)
		})
	}
	learn("192.0.2.1")
	asked := s.asked.Load()
	s.set(func(z *zone) { z.a = []string{"192.0.2.2"} })
	look("192.0.2.1", quick)
	testkit.Same(t, s.asked.Load(), asked)
	learn("192.0.2.2")
	for name, fail := range map[string]func(*zone){
		"silence": func(z *zone) { z.silent = true },
		"refusal": func(z *zone) { z.silent, z.code = false, dnsmessage.RCodeRefused },
	} {
		s.set(fail)
		n.expire()
		look("192.0.2.2", staleAfter+quick)
		look("192.0.2.2", quick)
		found, _, _ := lookup(t, n)
		testkit.Same(t, len(found), 2, name)
	}
	// But not forever.
	n.expire()
	for name, known := range n.hosts {
		known.learned = time.Now().Add(-mostStale - time.Second)
		n.hosts[name] = known
	}
	if found, _, err := lookup(t, n); err == nil {
		t.Errorf("%v is used for ever", found)
	}
}

// If a name server does not answer for one family, it is asked again, but not at once.
func TestAFamilyThatIsNotAnsweredIsLeftOut(t *testing.T) {
	s := serve(t, "127.0.0.1", zone{a: []string{"192.0.2.1"}, ttl: 60, silentAAAA: true})
	n := asking(s)
	if _, took, err := lookup(t, n); err != nil || took < resolutionDelay {
		t.Errorf("%v after %v", err, took)
	}
	asked := s.asked.Load()
	if _, took, err := lookup(t, n); err != nil || took >= resolutionDelay || s.asked.Load() != asked {
		t.Errorf("%v after %v, asked %d times more", err, took, s.asked.Load()-asked)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := serve(t, "127.0.0.1", zone{a: []string{"192.0.2.1"}, ttl: 60})
	n := asking(s)
	n.of.Family = IPv4
	for i := range mostNames + 100 {
		if _, err := n.lookup(t.Context(), fmt.Sprintf("host%d.example.", i)); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Holds(t, len(n.hosts) <= mostNames, len(n.hosts))
}

// The name of this machine is never sent to a server.
func TestLocalhostIsNotAskedFor(t *testing.T) {
	s := serve(t, "127.0.0.1", zone{a: []string{"192.0.2.1"}})
	found, err := asking(s).lookup(t.Context(), "my.localhost.")
	testkit.Holds(t, err == nil && len(found) != 0 && found[0].IsLoopback() && s.asked.Load() <= 0, found, err, s.asked.Load())
}

// Only addresses of the chosen family are queried and used.
func TestOneFamily(t *testing.T) {
	s := serve(t, "127.0.0.1", zone{a: []string{"127.0.0.1"}, aaaa: []string{"::1"}, ttl: 60})
	port := listening(t, "")
	for family, want := range map[string]string{IPv4: "127.0.0.1", IPv6: "::1"} {
		before := s.asked.Load()
		d := Dialer{Device: "lo", NameServers: []netip.AddrPort{s.address}, Family: family}
		conn, err := d.Dial(t.Context(), net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(family, err)
		}
		if got := conn.RemoteAddr().(*net.TCPAddr).IP.String(); got != want || s.asked.Load() != before+1 {
			t.Errorf("%s: %s, asked %d times", family, got, s.asked.Load()-before)
		}
		conn.Close()
		for _, literal := range []string{"127.0.0.1", "::1"} {
			conn, err := d.Dial(t.Context(), net.JoinHostPort(literal, port))
			testkit.Same(t, (err == nil), (literal == want), family, literal)
			if err == nil {
				conn.Close()
			} else if !strings.Contains(err.Error(), "is not used: only IPv") {
				t.Error(err)
			}
		}
	}
}

// If the first of several addresses does not answer, the next one is tried in parallel. The
// one that worked comes first from then on.
func TestAddressesAreTriedInTurn(t *testing.T) {
	port := listening(t, "127.0.0.1")
	// The first address does not answer: its queue is full.
	full := fullListener(t, "127.0.0.9", port)
	s := serve(t, "127.0.0.1", zone{a: []string{full, "127.0.0.8", "127.0.0.1"}, ttl: 60})
	d := Dialer{Device: "lo", NameServers: []netip.AddrPort{s.address}, Memory: new(Memory)}
	for i, limit := range []time.Duration{attemptDelay + quick, attemptDelay / 2} {
		start := time.Now()
		conn, err := d.Dial(t.Context(), net.JoinHostPort(host, port))
		testkit.OK(t, err)
		conn.Close()
		if took := time.Since(start); took > limit {
			t.Errorf("dial %d took %v", i, took)
		}
	}
	refused := serve(t, "127.0.0.1", zone{a: []string{"127.0.0.7", "127.0.0.8"}})
	d = Dialer{Device: "lo", NameServers: []netip.AddrPort{refused.address}}
	start := time.Now()
	if _, err := d.Dial(t.Context(), net.JoinHostPort(host, port)); err == nil || !strings.Contains(err.Error(), "refused") || time.Since(start) > quick {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Dial(ctx, net.JoinHostPort(host, port)); err == nil {
		t.Error("a cancelled dial succeeds")
	}
}
