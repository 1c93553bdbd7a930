package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// rememberedFor is how long an answer is used. The standard library does not tell its TTL.
	// curl does the same.
	rememberedFor = time.Minute
	// resolutionDelay is how long to wait for the other family of addresses after the answer
	// for one (RFC 8305 3). unansweredFor is how long that family is not used then.
	resolutionDelay = 50 * time.Millisecond
	unansweredFor   = 10 * time.Second
	// staleAfter is how long the servers may be silent before an older answer is used.
	// staleFor is how long it is used without asking again. mostStale limits its age (RFC 8767 5).
	staleAfter = time.Second
	staleFor   = 30 * time.Second
	mostStale  = 24 * time.Hour
	// failedFor is how long a failed query is not repeated (RFC 9520 3.2).
	failedFor = time.Second
	// betterWait is how long to wait for the other servers after an answer without an address
	// for this link. failedWait is the same after a server has failed.
	betterWait = 250 * time.Millisecond
	failedWait = 2 * time.Second
	// mostNames limits how many hosts are remembered.
	mostNames = 512
)

// names resolves and remembers the names of hosts through a link.
//
// The standard library's resolver reads /etc/hosts and resolv.conf(5), and handles search
// domains. But it asks one server after another, each for seconds, and waits for both families.
// So each server and family has a lookup of its own.
type names struct {
	of                     Dialer
	resolverFile, stubFile string

	mu    sync.Mutex
	hosts map[string]answer
	// resolvers are kept because a resolver joins equal lookups.
	resolvers map[nameServer]*net.Resolver
}

// answer is the outcome of a lookup: addresses, the best first, or an error. It arrived at
// learned, and is used until then. service is the answer of an HTTPS record.
type answer struct {
	addresses      []netip.Addr
	service        string
	err            error
	learned, until time.Time
}

func newNames(of Dialer) *names {
	return &names{
		of: of, resolverFile: resolverFile, stubFile: stubFile,
		hosts: map[string]answer{}, resolvers: map[nameServer]*net.Resolver{},
	}
}

// lookup returns the addresses of a host, the best first.
func (n *names) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if isLocal(host) {
		loopback := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
		return slices.DeleteFunc(loopback, func(a netip.Addr) bool { return n.of.checkFamily(a) != nil }), nil
	}
	key, now := strings.ToLower(host), time.Now() // Names ignore case (RFC 4343).
	n.mu.Lock()
	known := n.hosts[key]
	n.mu.Unlock()
	if now.Before(known.until) {
		return known.addresses, known.err
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, 1)
	go func() { answers <- n.ask(asking, host) }()
	var tooLate <-chan time.Time
	stale := len(known.addresses) > 0 && now.Sub(known.learned) < mostStale
	if stale {
		tooLate = time.After(staleAfter)
	}
	select {
	case got := <-answers:
		if ctx.Err() != nil || got.err == nil || isDenial(got.err) || !stale {
			known = got
			break
		}
		known.until = time.Now().Add(staleFor)
	case <-tooLate:
		known.until = time.Now().Add(staleFor)
	}
	if ctx.Err() == nil {
		n.remember(key, known)
	}
	return known.addresses, known.err
}

// remember keeps an answer, and drops any other if there are too many.
func (n *names) remember(host string, a answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other := range n.hosts {
		if len(n.hosts) < mostNames {
			break
		}
		delete(n.hosts, other)
	}
	n.hosts[host] = a
}

// expire ends the validity of all answers. They are still used if new queries fail.
func (n *names) expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for host, a := range n.hosts {
		a.until = time.Time{}
		n.hosts[host] = a
	}
}

// ask asks for the allowed families at once. IPv6 comes first (RFC 8305 4).
func (n *names) ask(ctx context.Context, host string) answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers, err := n.servers()
	if err != nil {
		servers = []nameServer{{missing: err.Error()}} // /etc/hosts may know the host.
	}
	families := []string{IPv6, IPv4}
	if n.of.Family != "" {
		families = []string{n.of.Family}
	}
	replies := make(chan reply, len(families))
	for _, family := range families {
		go func() { replies <- n.inquire(ctx, servers, family, host) }()
	}
	a, lasts := answer{}, rememberedFor
	var tooLate <-chan time.Time
	for range families {
		select {
		case r := <-replies:
			if r.err != nil && (a.err == nil || isDenial(a.err)) {
				a.err = r.err
			}
			if len(r.addresses) > 0 {
				tooLate = time.After(resolutionDelay)
			}
			a.addresses = append(a.addresses, r.addresses...)
		case <-tooLate:
			lasts = unansweredFor
		}
	}
	if len(a.addresses) > 0 {
		a.addresses, a.err = n.of.sorted(a.addresses), nil
	} else {
		a.err, lasts = naming(servers, a.err), failedFor
	}
	a.learned = time.Now()
	a.until = a.learned.Add(lasts)
	return a
}

// naming returns the error with the servers that were asked. The standard library names a
// server from resolv.conf instead.
func naming(servers []nameServer, err error) error {
	failed, ok := errors.AsType[*net.DNSError](err)
	if !ok {
		return err
	}
	var asked []string
	for _, s := range servers {
		if s.missing == "" {
			asked = append(asked, s.address.String())
		}
	}
	told := *failed // Other callers may have got the same error.
	told.Server = strings.Join(slices.Compact(asked), ", ")
	return &told
}

// sorted puts the addresses first to which the device has a route, and of these IPv6. The resolver has sorted each family
// by the machine's routes (RFC 6724), not by the device's.
func (d Dialer) sorted(found []netip.Addr) []netip.Addr {
	rank := map[netip.Addr]int{}
	for i, address := range found {
		found[i] = address.Unmap()
		conn, err := d.bound().Dial("udp", netip.AddrPortFrom(found[i], 53).String()) // This sends nothing.
		if err == nil {
			conn.Close()
			rank[found[i]] = 2
		}
		if found[i].Is6() {
			rank[found[i]]++
		}
	}
	slices.SortStableFunc(found, func(a, b netip.Addr) int { return rank[b] - rank[a] })
	return found
}

// quality rates a reply. The reply with the highest quality is used.
type quality int

const (
	isFailure quality = iota
	noAddress
	addressElsewhere
	isAddress
)

// reply is the answer of a server for one family.
type reply struct {
	quality   quality
	addresses []netip.Addr
	err       error
}

// isDenial reports whether the host has no address. Without a DNSError, /etc/hosts has only
// addresses of the other family.
func isDenial(err error) bool {
	failed, ok := errors.AsType[*net.DNSError](err)
	return !ok || failed.IsNotFound
}

// inquire asks all servers at once. It takes an address from a server of this link at once.
// After any other answer it waits briefly for better ones. Some servers know names that others
// do not (split horizon), and a provider's server refuses clients of other networks.
func (n *names) inquire(ctx context.Context, servers []nameServer, family, host string) (best reply) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replies := make(chan reply, len(servers))
	for _, s := range servers {
		go func() {
			addresses, err := n.resolver(s).LookupNetIP(ctx, family, host)
			r := reply{isAddress, addresses, err}
			switch {
			case err != nil && isDenial(err):
				r.quality = noAddress
			case err != nil:
				r.quality = isFailure
			case s.elsewhere:
				r.quality = addressElsewhere
			}
			replies <- r
		}()
	}
	var failed, better <-chan time.Time
	for range servers {
		select {
		case r := <-replies:
			if best.err == nil && best.addresses == nil || r.quality > best.quality {
				best = r
			}
		case <-failed:
			return best
		case <-better:
			return best
		}
		switch {
		case best.quality == isAddress:
			return best
		case best.quality > isFailure && better == nil:
			better = time.After(betterWait)
		case failed == nil:
			failed = time.After(failedWait)
		}
	}
	return best
}

// resolver returns the resolver that asks the server.
func (n *names) resolver(s nameServer) *net.Resolver {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.resolvers[s] == nil {
		n.resolvers[s] = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return s.dial(ctx, network)
		}}
	}
	return n.resolvers[s]
}

// isLocal reports whether a host is this machine (RFC 6761 6.3).
func isLocal(name string) bool {
	return strings.HasSuffix("."+strings.ToLower(strings.TrimSuffix(name, ".")), ".localhost")
}
