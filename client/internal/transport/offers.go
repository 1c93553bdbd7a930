package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/linklab/linklab/client/internal/link"
)

const (
	// quicPatience is how long a server may take to answer by QUIC until a link tries TCP. It is longer than the round
	// trip of any usual link, with a lost packet.
	quicPatience = 2 * time.Second
	// brokenFor is how long a link speaks no HTTP/3 with a server after it has failed there. Browsers begin with as much.
	brokenFor = 5 * time.Minute
	// usualAge is how long an offer holds (RFC 7838 3.1), and mostOffers how many servers' are remembered.
	usualAge   = 24 * time.Hour
	mostOffers = 1000
)

// HTTP3 knows with which servers a program speaks HTTP/3, over all its links.
type HTTP3 struct {
	// Only has all connections to the server of a URL speak HTTP/3. Else those do that begin after the server has
	// offered HTTP/3 (Alt-Svc, RFC 7838).
	Only bool

	mu     sync.Mutex
	offers map[string]offer
	// broken tells until when a link speaks no HTTP/3 with a server, by the names of both.
	broken map[[2]string]time.Time
}

// offer is a port of the same host at which the server speaks HTTP/3.
type offer struct {
	port  uint16
	until time.Time
}

type (
	dialFunc   = func(ctx context.Context, address string) (link.Socket, error)
	packetDial = func(context.Context) (link.PacketSocket, error)
	// recordsFunc is Dialer.Service of package link.
	recordsFunc = func(ctx context.Context, host string, port uint16, protocol string) (at string)
	originKey   struct{}
)

// To returns a context whose connections may speak HTTP/3, for requests for a URL.
func To(ctx context.Context, u *url.URL) context.Context {
	return context.WithValue(ctx, originKey{}, u)
}

// Dialer returns a dial over a link that makes connections by QUIC where HTTP/3 is spoken, else by TCP. A link over
// which QUIC fails uses TCP (RFC 7838 2.4). The server must have a certificate for the URL's host in either case.
// records, if set, also finds servers that offer HTTP/3 by an HTTPS record. Alt-Svc comes first.
func (h *HTTP3) Dialer(name string, packets packetDial, records recordsFunc, tcp dialFunc, config *tls.Config) dialFunc {
	config = config.Clone()
	config.NextProtos = []string{http3.NextProtoH3}
	_ = os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true") // The kernel's usual buffer will do.
	return func(ctx context.Context, address string) (link.Socket, error) {
		u, ok := ctx.Value(originKey{}).(*url.URL)
		switch {
		case !ok:
			return tcp(ctx, address)
		case h.Only:
			q, err := dialQUIC(ctx, packets, u, address, config)
			if err != nil {
				return nil, err // A nil *quicSocket in an interface would not be nil.
			}
			return q, nil
		}
		key := [2]string{name, Address(u)}
		patience := quicPatience
		if until, ok := ctx.Deadline(); ok {
			patience = min(patience, time.Until(until)/2) // The other half is for TCP.
		}
		limited, end := context.WithTimeout(ctx, patience)
		defer end()
		var at, used string
		if port := h.port(key); port != 0 {
			host, _, _ := net.SplitHostPort(address)
			text := strconv.Itoa(int(port))
			at, used = net.JoinHostPort(host, text), net.JoinHostPort(u.Hostname(), text)
		} else if records != nil && u.Scheme == "https" && !h.isBroken(key) {
			at = records(limited, u.Hostname(), portOf(u), http3.NextProtoH3)
		}
		if at == "" {
			return tcp(ctx, address)
		}
		q, err := dialQUIC(limited, packets, u, at, config)
		if err == nil {
			q.used, q.failed = used, func() { h.fails(key) }
			return q, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		socket, err := tcp(ctx, address)
		if err == nil { // Else the link may be down.
			h.fails(key)
		}
		return socket, err
	}
}

// port returns the port at which a link speaks HTTP/3 with a server, 0 if it does not.
func (h *HTTP3) port(key [2]string) uint16 {
	h.mu.Lock()
	one := h.offers[key[1]]
	h.mu.Unlock()
	if h.isBroken(key) || !time.Now().Before(one.until) {
		return 0
	}
	return one.port
}

func (h *HTTP3) isBroken(key [2]string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !time.Now().After(h.broken[key])
}

// fails records that HTTP/3 with a server fails over a link.
func (h *HTTP3) fails(key [2]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil || len(h.broken) >= mostOffers {
		h.broken = map[[2]string]time.Time{}
	}
	h.broken[key] = time.Now().Add(brokenFor)
}

// Heard takes what an answer to a request for a URL says of HTTP/3. It replaces what earlier answers said.
func (m *Hellos) Heard(u *url.URL, header http.Header) {
	if m == nil || m.HTTP3 == nil || u.Scheme != "https" || len(header["Alt-Svc"]) == 0 {
		return
	}
	h := m.HTTP3
	port, age := offered(header["Alt-Svc"], u.Hostname())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.offers == nil || len(h.offers) >= mostOffers {
		h.offers = map[string]offer{}
	}
	h.offers[Address(u)] = offer{port, time.Now().Add(age)}
}

// offered returns the first port at which a host offers HTTP/3, and for how long. Other hosts are left out. Without an
// offer, as with "clear", the age is 0.
func offered(values []string, host string) (port uint16, age time.Duration) {
	for one := range strings.SplitSeq(strings.Join(values, ","), ",") {
		value, parameters, _ := strings.Cut(one, ";")
		authority, isHTTP3 := strings.CutPrefix(strings.TrimSpace(value), http3.NextProtoH3+`="`)
		authority, isQuoted := strings.CutSuffix(authority, `"`)
		at, text, _ := net.SplitHostPort(authority)
		port, err := strconv.ParseUint(text, 10, 16)
		if !isHTTP3 || !isQuoted || err != nil || at != "" && !strings.EqualFold(at, host) {
			continue
		}
		age := usualAge
		for parameter := range strings.SplitSeq(parameters, ";") {
			if said, ok := strings.CutPrefix(strings.TrimSpace(parameter), "ma="); ok {
				seconds, _ := strconv.ParseUint(strings.Trim(said, `"`), 10, 31) // The most if it is more, 0 if it is no number.
				age = time.Duration(seconds) * time.Second
			}
		}
		return uint16(port), age
	}
	return 0, 0
}
