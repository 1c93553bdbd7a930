package transport

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/tests/testkit"
)

// offersH3 are the parameters alpn=h3 port=PORT.
func offersH3(port uint16) []dnsmessage.SVCParam {
	return []dnsmessage.SVCParam{{Key: dnsmessage.SVCParamALPN, Value: []byte("\x02h3")}, {Key: dnsmessage.SVCParamPort, Value: binary.BigEndian.AppendUint16(nil, port)}}
}

// The first connection is QUIC's where a record offers it. All failures end in TCP, and so does a link that does not ask.
func TestHTTP3OfARecord(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.OK(t, err)
	defer silent.Close()
	for name, want := range map[string][]string{
		"offered":              {overQUIC, overQUIC},
		"offered by an alias":  {overQUIC, overQUIC},
		"not asked for":        {overTCP, overTCP},
		"no record":            {overTCP, overTCP},
		"name server silent":   {overTCP, overTCP},
		"server of it silent":  {overTCP, overTCP},
		"server of it refuses": {overQUIC, overTCP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var offer atomic.Value
			offer.Store("clear")
			u, certificate, roots := offerer(t, &offer)
			alternative := serveHTTP3(t, certificate, func(w http.ResponseWriter, r *http.Request, _ *quic.Conn) {
				if name == "server of it refuses" {
					w.WriteHeader(http.StatusMisdirectedRequest)
				}
				testkit.Same(t, r.Header.Get("Alt-Used"), "") // That is for Alt-Svc.
			})
			if name == "server of it silent" {
				alternative = silent.LocalAddr().String()
			}
			port := netip.MustParseAddrPort(alternative).Port()
			own := "_" + u.Port() + "._https.host.example."
			var asked atomic.Int32
			server := testkit.Answers(t, func(q dnsmessage.Question) (found []dnsmessage.Resource) {
				of := q.Name.String()
				switch {
				case q.Type == dnsmessage.TypeA:
					return append(found, testkit.Record(of, &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}))
				case q.Type != dnsmessage.TypeHTTPS:
					return nil
				}
				asked.Add(1)
				body := dnsmessage.SVCBResource{Priority: 1, Target: dnsmessage.MustNewName("."), Params: offersH3(port)}
				switch {
				case name == "no record":
					return nil
				case name == "name server silent":
					time.Sleep(3 * time.Second)
				case name == "offered by an alias" && of == own:
					body = dnsmessage.SVCBResource{Target: dnsmessage.MustNewName("svc.example.")}
				}
				return append(found, testkit.Record(of, &dnsmessage.HTTPSResource{SVCBResource: body}))
			})
			v := visits{t, u, roots, &Hellos{HTTP3: &HTTP3{}}, link.Dialer{
				Device: "lo", Family: link.IPv4, NameServers: []netip.AddrPort{netip.MustParseAddrPort(server)}, Memory: new(link.Memory),
			}, name != "not asked for"}
			for i, protocol := range want {
				got, err := v.by("wifi")
				testkit.Same(t, got, protocol)
				testkit.Holds(t, (err != nil) == (name == "server of it refuses" && i == 0), err)
			}
			most := map[string]int32{"not asked for": 0, "offered by an alias": 2, "name server silent": 2}
			if limit, ok := most[name]; !ok {
				testkit.Same(t, asked.Load(), 1)
			} else {
				testkit.Holds(t, asked.Load() <= limit, asked.Load())
			}
		})
	}
}

// drawnRecord is a record as a test draws it, of which the judge knows what each part means.
type drawnRecord struct {
	priority uint16
	target   string
	// keys of parameters in their order. isBroken is true if the record cannot be split into its parts.
	keys     []uint16
	isBroken bool
	// values are as they are sent. badValue is true if one has not the form of its key.
	values    map[uint16][]byte
	badValue  bool
	protocols []string
	mandatory []uint16
	port      uint16
}

const (
	mandatory uint16 = iota
	alpn
	noDefaultALPN
	portKey
	hint4
	ech
	hint6
)

var drawnNames = []string{"host.example.", "a.example.", "b.example.", "c.example.", "d.example."}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func drawRecord(r *rand.Rand) (d drawnRecord) {
	d.values = map[uint16][]byte{}
	d.priority = pick[uint16](r, 0, 1, 1, 1, 2, 2, 65535)
	d.target = pick(r, append([]string{".", ".", "."}, drawnNames...)...)
	for _, key := range []uint16{alpn, noDefaultALPN, portKey, hint4, ech, hint6, 7, 65280, 65535} {
		if key == alpn && r.IntN(4) > 0 || key != alpn && r.IntN(5) == 0 {
			d.keys = append(d.keys, key)
		}
	}
	isBad := func() bool {
		bad := r.IntN(25) == 0
		d.badValue = d.badValue || bad
		return bad
	}
	for _, key := range d.keys {
		var value []byte
		bad := key < 7 && key != ech && isBad()
		switch key {
		case alpn:
			for range 1 + r.IntN(3) {
				id := pick(r, "h3", "h3", "h2", "http/1.1", "h3-29", "\x00,\\")
				d.protocols = append(d.protocols, id)
				value = append(append(value, byte(len(id))), id...)
			}
			if bad {
				value = pick(r, nil, value[:len(value)-1], append(value, 0), append(value, 9, 'h'))
			}
		case noDefaultALPN:
			if bad {
				value = []byte{0}
			}
		case portKey:
			d.port = pick[uint16](r, 0, 1, 443, 443, 8443, 65535)
			value = binary.BigEndian.AppendUint16(nil, d.port)
			if bad {
				value = pick(r, nil, value[:1], append(value, 0))
			}
		case hint4:
			value = make([]byte, 4*(1+r.IntN(3))-map[bool]int{true: 1}[bad])
		case hint6:
			value = make([]byte, 16*(1+r.IntN(3))-map[bool]int{true: 8}[bad])
		default:
			value = make([]byte, r.IntN(9))
		}
		d.values[key] = value
	}
	if r.IntN(3) == 0 {
		for _, key := range []uint16{alpn, portKey, hint6, pick[uint16](r, hint4, ech, 7, 65280)} {
			if slices.Contains(d.keys, key) || r.IntN(8) == 0 {
				d.mandatory = append(d.mandatory, key)
			}
		}
		slices.Sort(d.mandatory)
		d.mandatory = slices.Compact(d.mandatory)
		var value []byte
		for _, key := range d.mandatory {
			value = binary.BigEndian.AppendUint16(value, key)
		}
		if len(value) == 0 {
			d.badValue = true
		} else if isBad() {
			value = pick(r, value[1:], append(value, value[len(value)-2:]...), append([]byte{0, 0}, value...))
		}
		d.keys, d.values[mandatory] = append([]uint16{mandatory}, d.keys...), value
	}
	if r.IntN(30) == 0 && len(d.keys) > 1 {
		d.isBroken = true
		if i := 1 + r.IntN(len(d.keys)-1); r.IntN(2) == 0 {
			d.keys[i] = d.keys[i-1]
		} else {
			d.keys[i], d.keys[i-1] = d.keys[i-1], d.keys[i]
		}
	}
	return d
}

// rdata is the record as it is sent (RFC 9460 2.2).
func (d *drawnRecord) rdata(r *rand.Rand) []byte {
	sent := binary.BigEndian.AppendUint16(nil, d.priority)
	if d.target != "." {
		for label := range strings.SplitSeq(strings.TrimSuffix(d.target, "."), ".") {
			sent = append(append(sent, byte(len(label))), label...)
		}
	}
	sent = append(sent, 0)
	for _, key := range d.keys {
		sent = binary.BigEndian.AppendUint16(sent, key)
		sent = append(binary.BigEndian.AppendUint16(sent, uint16(len(d.values[key]))), d.values[key]...)
	}
	switch r.IntN(60) {
	case 0:
		sent, d.isBroken = sent[:len(sent)-1], true
	case 1:
		sent, d.isBroken = append(sent, 0), true
	case 2:
		sent[2], d.isBroken = 0x40, true // No kind of label.
	}
	return sent
}

// drawnZone is what a name server knows. A name with an alias (CNAME) has nothing else. The server also sends the
// record of another name.
type drawnZone struct {
	records map[string][]drawnRecord
	sent    map[string][][]byte
	aliases map[string]string
}

func drawZone(r *rand.Rand, own string) drawnZone {
	z := drawnZone{map[string][]drawnRecord{}, map[string][][]byte{}, map[string]string{}}
	for _, name := range append([]string{own}, drawnNames...) {
		if r.IntN(6) == 0 {
			z.aliases[name] = pick(r, drawnNames...)
			continue
		}
		for range pick(r, 0, 1, 1, 2, 3) {
			one := drawRecord(r)
			z.sent[name] = append(z.sent[name], one.rdata(r))
			z.records[name] = append(z.records[name], one)
		}
	}
	return z
}

// chain returns a name and those that it is an alias of. The last one has the records.
func (z drawnZone) chain(name string) []string {
	names := []string{name}
	for z.aliases[name] != "" && len(names) < 9 {
		name = z.aliases[name]
		names = append(names, name)
	}
	return names
}

func (z drawnZone) answer(q dnsmessage.Question) (found []dnsmessage.Resource) {
	if q.Type != dnsmessage.TypeHTTPS {
		return nil
	}
	other := dnsmessage.SVCBResource{Priority: 1, Target: dnsmessage.MustNewName("."), Params: offersH3(443)}
	found = append(found, testkit.Record("other.example.", &dnsmessage.HTTPSResource{SVCBResource: other}))
	names := z.chain(q.Name.String())
	for i, name := range names[1:] {
		found = append(found, testkit.Record(names[i], &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(name)}))
	}
	owner := names[len(names)-1]
	for _, data := range z.sent[owner] {
		found = append(found, testkit.Record(owner, &dnsmessage.UnknownResource{Type: dnsmessage.TypeHTTPS, Data: data}))
	}
	return found
}

// judge adds where a client may speak HTTP/3 to what it allows, "" for nowhere. It goes by what was drawn, and by RFC
// 9460. Where the RFC has a client choose at random, it allows each choice.
func (z drawnZone) judge(name, port string, before []string, allowed map[string]bool) {
	names := z.chain(name)
	owner := names[len(names)-1]
	records := z.records[owner]
	isMalformed := func(d drawnRecord) bool { return d.isBroken || d.priority > 0 && d.badValue }
	var aliases, services []drawnRecord
	for _, d := range records {
		switch {
		case d.priority == 0 && d.target != ".":
			aliases = append(aliases, d)
		case d.priority > 0 && d.isUsable():
			services = append(services, d)
		}
	}
	hasAlias := slices.ContainsFunc(records, func(d drawnRecord) bool { return d.priority == 0 })
	switch {
	case slices.ContainsFunc(records, isMalformed), slices.Contains(before, name), hasAlias && len(aliases) == 0, !hasAlias && len(services) == 0:
		allowed[""] = true
	case hasAlias:
		for _, d := range aliases {
			z.judge(d.target, port, append(before, name), allowed)
		}
	default:
		best := slices.MinFunc(services, func(a, b drawnRecord) int { return int(a.priority) - int(b.priority) }).priority
		for _, d := range services {
			if d.priority != best {
				continue
			}
			at, host := port, d.target
			if slices.Contains(d.keys, portKey) {
				at = fmt.Sprint(d.port)
			}
			if host == "." {
				host = owner
			}
			if slices.Contains(d.protocols, "h3") {
				allowed[strings.TrimSuffix(host, ".")+":"+at] = true
			} else {
				allowed[""] = true
			}
		}
	}
}

// isUsable reports whether a client may use the record: it knows the mandatory keys, and they are there (RFC 9460 8),
// no-default-alpn has an alpn beside it (7.1), and the port is one.
func (d drawnRecord) isUsable() bool {
	known := []uint16{alpn, noDefaultALPN, portKey, hint4, hint6}
	for _, key := range d.mandatory {
		if !slices.Contains(known, key) || !slices.Contains(d.keys, key) {
			return false
		}
	}
	has := func(key uint16) bool { return slices.Contains(d.keys, key) }
	return (has(alpn) || !has(noDefaultALPN)) && (!has(portKey) || d.port > 0)
}

// elsewhere is a socket that tells where a connection was to go.
type elsewhere struct {
	link.PacketSocket
	to *string
}

func (e elsewhere) Connect(_ context.Context, address string, _ func(context.Context, netip.AddrPort) (io.Closer, error)) (io.Closer, error) {
	*e.to = address
	return nil, errors.New("it is not made")
}

// Whatever records say, HTTP/3 is spoken where RFC 9460 allows it, and nowhere else.
func TestRecordsOfAllKinds(t *testing.T) {
	const cases = 3000
	var z atomic.Pointer[drawnZone]
	server := netip.MustParseAddrPort(testkit.Answers(t, func(q dnsmessage.Question) []dnsmessage.Resource { return z.Load().answer(q) }))
	outcomes := map[string]uint64{}
	n := racedetector.Part(cases)
	for seed := range n {
		r := rand.New(rand.NewPCG(seed, 53))
		port := pick(r, "443", "443", "8443")
		own := drawnNames[0]
		if port != "443" {
			own = "_" + port + "._https." + own
		}
		drawn := drawZone(r, own)
		z.Store(&drawn)
		allowed := map[string]bool{}
		drawn.judge(own, port, nil, allowed)
		var got string
		lo := link.Dialer{Device: "lo", NameServers: []netip.AddrPort{server}, Memory: new(link.Memory)}
		packets := func(ctx context.Context) (link.PacketSocket, error) {
			opened, err := lo.Packets(ctx)
			return elsewhere{opened, &got}, err
		}
		tcp := func(context.Context, string) (link.Socket, error) { return nil, nil }
		u := &url.URL{Scheme: "https", Host: "host.example:" + port}
		_, err := (&HTTP3{}).Dialer("lo", packets, lo.Service, tcp, new(tls.Config))(To(t.Context(), u), Address(u))
		testkit.OK(t, err)
		host, at, _ := strings.Cut(got, ":")
		if got != "" {
			got = strings.TrimSuffix(host, ".") + ":" + at
		}
		testkit.Holds(t, allowed[got], "seed", seed, got, allowed, drawn.records, drawn.aliases)
		outcomes[fmt.Sprint(got != "", " ", strings.HasPrefix(got, "host.example:"))]++
	}
	for _, kind := range []string{"false false", "true false", "true true"} {
		testkit.Holds(t, outcomes[kind] > n/30, outcomes)
	}
}
