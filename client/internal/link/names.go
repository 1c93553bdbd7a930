package link

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// resolutionDelay is how long to wait for the other family of addresses after the answer
	// for one (RFC 8305 3). unansweredFor is how long that family is not used then.
	resolutionDelay = 50 * time.Millisecond
	unansweredFor   = 10 * time.Second
	// staleAfter is how long the servers may be silent before an older answer is used.
	// staleFor is how long it is used without asking again. mostStale limits its age beyond
	// its TTL (RFC 8767 5).
	staleAfter = time.Second
	staleFor   = 30 * time.Second
	mostStale  = 24 * time.Hour
	// failedFor is how long a failed query is not repeated (RFC 9520 3.2).
	failedFor = time.Second
	// oneLookup is how far apart the queries of one lookup may begin. The standard library starts
	// them in two goroutines, and a busy machine may answer one before the other begins.
	oneLookup = time.Second
	// mostNames limits how many hosts are remembered.
	mostNames = 512
)

// names resolves and remembers the names of hosts through a link.
//
// The standard library's resolver reads /etc/hosts and resolv.conf(5). It handles search
// domains and the order of addresses. But it asks one server after another, each for
// seconds. So it gets a connection to names instead, which asks all servers at once.
type names struct {
	of                     Dialer
	resolver               *net.Resolver
	resolverFile, stubFile string

	mu    sync.Mutex
	hosts map[string]*hostRecords
	// asked are the servers of the last query.
	asked []string
}

// hostRecords are the answers for a host.
type hostRecords struct {
	of map[dnsmessage.Type]*record
	// changed is closed and replaced at every new answer.
	changed chan struct{}
}

// record holds the answers for one family of addresses.
type record struct {
	// message is the answer to use until then.
	message []byte
	until   time.Time
	// last is the last answer of a server that did not fail. It arrived at learned, and
	// its TTL ends at ended.
	last           reply
	learned, ended time.Time
}

// hasAddress reports whether there is a valid address of the family. An answer that arrived at
// since or later is valid even with a TTL of 0.
func (r *record) hasAddress(since time.Time) bool {
	holds := time.Now().Before(r.until) || !r.learned.Before(since)
	return holds && r.last.hasAddress() && &r.message[0] == &r.last.message[0]
}

func newNames(of Dialer) *names {
	n := &names{of: of, hosts: map[string]*hostRecords{}, resolverFile: resolverFile, stubFile: stubFile}
	n.resolver = &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return &exchange{ctx: ctx, names: n}, nil
		},
	}
	return n
}

// lookup returns the addresses of a host, the best first (RFC 6724).
func (n *names) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	network := n.of.Family
	if network == "" {
		network = "ip"
	}
	found, err := n.resolver.LookupNetIP(ctx, network, host)
	for i, address := range found {
		found[i] = address.Unmap()
	}
	return found, n.explained(err)
}

// explained returns an error with the servers that were asked. The standard library names a
// server from resolv.conf instead.
func (n *names) explained(err error) error {
	failed := new(net.DNSError)
	if !errors.As(err, &failed) {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	told := *failed // Other callers may have got the same error.
	if len(n.asked) > 0 {
		told.Server = strings.Join(n.asked, ", ")
	}
	return &told
}

// expire ends the validity of all answers. They are still used if new queries fail.
func (n *names) expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, host := range n.hosts {
		for _, r := range host.of {
			r.until = time.Time{}
		}
	}
}

// keyOf returns a question in lower case, because names ignore case (RFC 4343).
func keyOf(q dnsmessage.Question) dnsmessage.Question {
	name, err := dnsmessage.NewName(strings.ToLower(q.Name.String()))
	if err == nil {
		q.Name = name
	}
	return q
}

// records returns the answers for the host; n.mu is held.
func (n *names) records(host string) *hostRecords {
	known := n.hosts[host]
	if known == nil {
		if len(n.hosts) >= mostNames {
			n.forget()
		}
		known = &hostRecords{of: map[dnsmessage.Type]*record{}, changed: make(chan struct{})}
		n.hosts[host] = known
	}
	return known
}

// forget drops the hosts whose answers are too old, or any half of all; n.mu is held.
func (n *names) forget() {
	now := time.Now()
	for name, host := range n.hosts {
		fresh := false
		for _, r := range host.of {
			fresh = fresh || now.Before(r.until)
		}
		if !fresh {
			delete(n.hosts, name)
		}
	}
	for name := range n.hosts {
		if len(n.hosts) <= mostNames/2 {
			return
		}
		delete(n.hosts, name)
	}
}

func (h *hostRecords) record(family dnsmessage.Type) *record {
	if h.of[family] == nil {
		h.of[family] = &record{}
	}
	return h.of[family]
}

// other returns the other family of addresses.
func other(family dnsmessage.Type) dnsmessage.Type {
	if family == dnsmessage.TypeA {
		return dnsmessage.TypeAAAA
	}
	return dnsmessage.TypeA
}

// answer answers a query from memory, or asks the servers.
func (n *names) answer(ctx context.Context, query []byte) ([]byte, error) {
	_, q, _, err := question(query)
	if err != nil {
		return nil, err
	}
	if isLocal(q.Name.String()) {
		return local(query, q)
	}
	q = keyOf(q)
	now := time.Now()
	n.mu.Lock()
	host := n.records(q.Name.String())
	own, others := host.record(q.Type), host.record(other(q.Type))
	if own.message != nil && now.Before(own.until) {
		defer n.mu.Unlock()
		return own.message, nil
	}
	var stale []byte
	if now.Sub(own.ended) < mostStale {
		stale = own.last.message
	}
	n.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers, err := n.servers()
	if err != nil {
		return nil, err
	}
	n.ask(servers)
	replies := make(chan reply, 1)
	go func() { replies <- inquire(ctx, servers, query) }()
	tooLate, tooOld := newWait(resolutionDelay), newWait(staleAfter)
	defer tooLate.stop()
	defer tooOld.stop()
	if stale != nil {
		tooOld.start()
	}
	for {
		n.mu.Lock()
		if others.hasAddress(now.Add(-oneLookup)) {
			tooLate.start()
		}
		changed := host.changed
		n.mu.Unlock()
		select {
		case r := <-replies:
			switch {
			case r.quality > isFailure:
				return n.learn(host, own, r), nil
			case stale != nil:
				return n.use(host, own, stale, staleFor), nil
			case r.message == nil:
				return nil, r.err
			default:
				r.ttl = failedFor
			}
			return n.use(host, own, r.message, r.ttl), nil
		case <-tooOld.over():
			return n.use(host, own, stale, staleFor), nil
		case <-tooLate.over():
			message := stale
			if message == nil {
				message = empty(query)
			}
			return n.use(host, own, message, unansweredFor), nil
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (n *names) ask(servers []nameServer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = nil
	for _, server := range servers {
		if text := server.address.String(); len(n.asked) == 0 || n.asked[len(n.asked)-1] != text {
			n.asked = append(n.asked, text)
		}
	}
}

// learn records an answer of a server that did not fail, and makes it the answer for its TTL. Both happen
// at once: the query for the other family reads the record.
func (n *names) learn(host *hostRecords, own *record, r reply) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	own.last, own.learned = r, time.Now()
	own.ended = own.learned.Add(r.ttl)
	return host.use(own, r.message, r.ttl)
}

// use makes a message the answer for that time.
func (n *names) use(host *hostRecords, own *record, message []byte, ttl time.Duration) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return host.use(own, message, ttl)
}

// use makes a message the answer for that time. The mutex of names is held.
func (host *hostRecords) use(own *record, message []byte, ttl time.Duration) []byte {
	own.message, own.until = message, time.Now().Add(ttl)
	close(host.changed)
	host.changed = make(chan struct{})
	return message
}

// empty returns an answer without addresses.
func empty(query []byte) []byte {
	message := withoutEDNS(query)
	message[2], message[3] = 0x81, 0x80 // Response, recursion desired and available (RFC 1035 4.1.1).
	return message
}

// isLocal reports whether a host is this machine (RFC 6761 6.3).
func isLocal(name string) bool {
	name = "." + strings.ToLower(strings.TrimSuffix(name, "."))
	return strings.HasSuffix(name, ".localhost")
}

// local returns an answer with the address of this machine.
func local(query []byte, q dnsmessage.Question) ([]byte, error) {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{Response: true, RecursionAvailable: true})
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
	failed := errors.Join(b.StartQuestions(), b.Question(q), b.StartAnswers())
	switch q.Type {
	case dnsmessage.TypeA:
		failed = errors.Join(failed, b.AResource(header, dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}))
	case dnsmessage.TypeAAAA:
		failed = errors.Join(failed, b.AAAAResource(header, dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()}))
	}
	if failed != nil {
		return nil, failed
	}
	return b.Finish()
}

// exchange is a connection over which the standard library asks names, as it asks a server
// over TCP.
type exchange struct {
	net.Conn // This is nil: only the methods below are called.
	ctx      context.Context
	names    *names
	query    []byte
	unread   []byte
}

// Write takes the query in one piece.
func (e *exchange) Write(p []byte) (int, error) {
	if len(p) < 2+headerLength {
		return 0, errors.New("this is no query")
	}
	e.query = p[2:]
	return len(p), nil
}

// Read returns the answer.
func (e *exchange) Read(p []byte) (int, error) {
	if e.query != nil {
		message, err := e.names.answer(e.ctx, e.query)
		if err != nil {
			return 0, err
		}
		e.unread = append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
		copy(e.unread[2:], e.query[:2]) // The ID.
		e.query = nil
	}
	if len(e.unread) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(p, e.unread)
	e.unread = e.unread[n:]
	return n, nil
}

func (e *exchange) Close() error { return nil }

// SetDeadline does nothing, because the context has the same deadline.
func (e *exchange) SetDeadline(time.Time) error { return nil }
