package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/net/dns/dnsmessage"
)

const (
	// recordPatience is how long the name servers have to tell a service, aliases included.
	recordPatience = time.Second
	// mostAliases limits how many records are asked for one after another (RFC 9460 2.4.2).
	mostAliases = 8
	// longestRecords is the longest answer, in bytes. Servers truncate longer ones, which count as none.
	longestRecords = 1232
)

var errNoRecord = errors.New("no HTTPS record can be used")

// Service returns the HOST:PORT at which the server of an https URL offers a protocol by its HTTPS record (RFC 9460).
// It is "" without such an offer. The Dialer must have a Memory.
//
// The link's own name servers are asked, through its device. The best record that a client may use decides. Hints of
// addresses are not needed: the target is resolved as other names (RFC 9460 7.3).
func (d Dialer) Service(ctx context.Context, host string, port uint16, protocol string) (at string) {
	if _, err := netip.ParseAddr(host); err == nil || isLocal(host) {
		return ""
	}
	own := strings.TrimSuffix(host, ".") + "."
	name := own
	if port != 443 {
		name = fmt.Sprintf("_%d._https.%s", port, own)
	}
	n, key := d.names(), "HTTPS of "+strings.ToLower(name)
	n.mu.Lock()
	known := n.hosts[key]
	n.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.service
	}
	limited, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	for range mostAliases {
		best, err := n.record(limited, name, port, protocol)
		if err != nil {
			break
		}
		if name = best.target; best.Priority == 0 {
			continue
		}
		if strings.EqualFold(name, own) {
			name = host // Its addresses may be remembered.
		}
		if best.offers {
			at = net.JoinHostPort(name, strconv.Itoa(int(best.port)))
		}
		break
	}
	if ctx.Err() == nil {
		n.remember(key, answer{service: at, until: time.Now().Add(rememberedFor)})
	}
	return at
}

// record is an HTTPS record. offers tells whether it offers the protocol.
type record struct {
	dnsmessage.HTTPSResource
	target string
	port   uint16
	offers bool
}

// record asks the name servers of the link for the HTTPS records of a name. It returns an alias, or the best record
// that can be used. All records count as missing if one is malformed (RFC 9460 2.2).
func (n *names) record(ctx context.Context, name string, port uint16, protocol string) (best record, err error) {
	servers, _ := n.servers() // Without any there is no record.
	type reply struct {
		owner   string
		records []dnsmessage.HTTPSResource
		err     error
	}
	replies, asked := make(chan reply, len(servers)), 0
	for _, s := range servers {
		if s.elsewhere {
			continue
		}
		asked++
		go func() {
			owner, records, err := s.records(ctx, name)
			replies <- reply{owner, records, err}
		}()
	}
	r := reply{err: errNoRecord}
	for ; asked > 0 && r.err != nil; asked-- {
		r = <-replies
	}
	err = cmp.Or(r.err, errNoRecord)
	rand.Shuffle(len(r.records), func(i, j int) { r.records[i], r.records[j] = r.records[j], r.records[i] })
	slices.SortStableFunc(r.records, func(a, b dnsmessage.HTTPSResource) int { return cmp.Compare(a.Priority, b.Priority) })
	hasAlias := len(r.records) > 0 && r.records[0].Priority == 0
	for _, one := range r.records {
		this, isUsable, isMalformed := readRecord(one, port, protocol)
		if isMalformed {
			return best, errNoRecord
		}
		if this.target == "." && this.Priority > 0 {
			this.target = r.owner
		}
		if isUsable && err != nil && hasAlias == (this.Priority == 0) {
			best, err = this, nil
		}
	}
	return best, err
}

// readRecord reads the parameters of a record.
func readRecord(of dnsmessage.HTTPSResource, port uint16, protocol string) (r record, isUsable, isMalformed bool) {
	r = record{of, of.Target.String(), port, false}
	isUsable = !strings.Contains(r.target, ":") // It would be an IPv6 address.
	if of.Priority == 0 {                       // The parameters of an alias have no meaning.
		return r, isUsable && r.target != ".", false
	}
	for _, p := range of.Params {
		value, isRight := cryptobyte.String(p.Value), true
		switch p.Key {
		case dnsmessage.SVCParamMandatory:
			for last, key := uint16(0), uint16(0); isRight && !value.Empty(); last = key {
				isRight = value.ReadUint16(&key) && key > last
				_, isThere := of.GetParam(dnsmessage.SVCParamKey(key))
				isUsable = isUsable && isThere && key <= uint16(dnsmessage.SVCParamIPv6Hint) && key != uint16(dnsmessage.SVCParamECH)
			}
		case dnsmessage.SVCParamALPN:
			for id := cryptobyte.String(nil); isRight && !value.Empty(); r.offers = r.offers || string(id) == protocol {
				isRight = value.ReadUint8LengthPrefixed(&id) && !id.Empty()
			}
		case dnsmessage.SVCParamNoDefaultALPN:
			_, hasALPN := of.GetParam(dnsmessage.SVCParamALPN)
			isUsable = isUsable && hasALPN
		case dnsmessage.SVCParamPort:
			isRight = value.ReadUint16(&r.port) && value.Empty()
			isUsable = isUsable && r.port > 0
		case dnsmessage.SVCParamIPv4Hint:
			isRight = len(value)%net.IPv4len == 0
		case dnsmessage.SVCParamIPv6Hint:
			isRight = len(value)%net.IPv6len == 0
		default:
			continue
		}
		isMalformed = isMalformed || !isRight || (len(p.Value) == 0) != (p.Key == dnsmessage.SVCParamNoDefaultALPN)
	}
	return r, isUsable, isMalformed
}

// records asks the server for the HTTPS records of a name. owner is their name, after aliases of all names (CNAME).
func (s nameServer) records(ctx context.Context, name string) (owner string, records []dnsmessage.HTTPSResource, err error) {
	asked, err := dnsmessage.NewName(name)
	if err != nil {
		return "", nil, err
	}
	extended := dnsmessage.Resource{Body: new(dnsmessage.OPTResource)}
	_ = extended.Header.SetEDNS0(longestRecords, dnsmessage.RCodeSuccess, false)
	question := dnsmessage.Question{Name: asked, Type: dnsmessage.TypeHTTPS, Class: dnsmessage.ClassINET}
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: uint16(rand.Uint32()), RecursionDesired: true},
		Questions: []dnsmessage.Question{question}, Additionals: []dnsmessage.Resource{extended},
	}
	packed, err := query.Pack()
	if err != nil {
		return "", nil, err
	}
	conn, err := s.dial(ctx, "udp")
	if err != nil {
		return "", nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(packed); err != nil {
		return "", nil, err
	}
	for buffer := make([]byte, 1<<16); ; {
		length, err := conn.Read(buffer)
		if err != nil {
			return "", nil, err
		}
		var p dnsmessage.Parser
		header, err := p.Start(buffer[:length])
		questions, wrong := p.AllQuestions()
		if err != nil || wrong != nil || header.ID != query.ID || !header.Response || len(questions) != 1 ||
			questions[0].Type != question.Type || !strings.EqualFold(questions[0].Name.String(), name) {
			continue // It answers another question.
		}
		answers, err := p.AllAnswers()
		if err != nil || header.Truncated || header.RCode != dnsmessage.RCodeSuccess {
			return "", nil, cmp.Or(err, errNoRecord)
		}
		owner = name
		for _, one := range answers {
			if !strings.EqualFold(one.Header.Name.String(), owner) {
				continue
			}
			switch body := one.Body.(type) {
			case *dnsmessage.CNAMEResource:
				owner = body.CNAME.String()
			case *dnsmessage.HTTPSResource:
				records = append(records, *body)
			}
		}
		return owner, records, nil
	}
}
