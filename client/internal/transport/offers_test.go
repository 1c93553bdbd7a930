package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestOffers(t *testing.T) {
	for text, want := range map[string]struct {
		port uint16
		age  time.Duration
	}{
		`h3=":443"`:                                {443, usualAge},
		`h3=":8443"; ma=60`:                        {8443, time.Minute},
		`h3=":8443";persist=1 ; ma="60"`:           {8443, time.Minute},
		`h3-29=":1", h2=":2", h3="host.example:3"`: {3, usualAge},
		`h3="HOST.example:443"`:                    {443, usualAge},
		`h3=":443"; ma=99999999999999999999`:       {443, (1<<31 - 1) * time.Second},
		`h3=":443"; ma=0`:                          {443, 0},
		`h3=":443"; ma=-1`:                         {443, 0},
		`h3=":443"; ma=soon`:                       {443, 0},
		`h3="other.example:443"`:                   {},
		`h3="other.example:443", h3=":444"`:        {444, usualAge},
		`h3=":0"`:                                  {0, usualAge},
		`h3=":65536"`:                              {},
		`h3=":-1"`:                                 {},
		`h3=":https"`:                              {},
		`h3="443"`:                                 {},
		`h3=:443`:                                  {},
		`h3=":443`:                                 {},
		`clear`:                                    {},
		``:                                         {},
		`;;;,,,"="`:                                {},
		strings.Repeat(`h3="other:1",`, 100_000):   {},
		`h3=":` + strings.Repeat("4", 1_000_000) + `"`: {},
	} {
		port, age := offered([]string{text}, "host.example")
		testkit.Holds(t, port == want.port && age == want.age, text[:min(len(text), 50)], port, age)
	}
	port, _ := offered([]string{`h3-29=":1"`, `h3=":2"`}, "::1")
	testkit.Same(t, port, 2)
	port, _ = offered([]string{`h3="[::1]:3"`}, "::1")
	testkit.Same(t, port, 3)

	// So many servers are remembered, and no offer of one without TLS.
	m := &Hellos{HTTP3: &HTTP3{}}
	for i := range 2*mostOffers + 1 {
		host := fmt.Sprint("host-", i)
		m.Heard(&url.URL{Scheme: "https", Host: host}, http.Header{"Alt-Svc": {`h3=":1"`}})
		m.HTTP3.fails([2]string{"wifi", host + ":443"})
	}
	m.Heard(&url.URL{Scheme: "http", Host: "plain"}, http.Header{"Alt-Svc": {`h3=":1"`}})
	testkit.Holds(t, len(m.HTTP3.offers) == 1 && len(m.HTTP3.broken) == 1, len(m.HTTP3.offers), len(m.HTTP3.broken))
}

// offerer serves host.example by HTTP/2, and says in each answer what offer holds.
func offerer(t *testing.T, offer *atomic.Value) (u *url.URL, certificate tls.Certificate, roots *x509.CertPool) {
	certificate, roots = testkit.Certificate("host.example")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Alt-Svc", offer.Load().(string))
	}))
	server.EnableHTTP2, server.TLS = true, &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return &url.URL{Scheme: "https", Host: "host.example:" + port, Path: "/"}, certificate, roots
}

// visits asks for a URL over a link, on a new connection each time.
type visits struct {
	t      *testing.T
	u      *url.URL
	roots  *x509.CertPool
	hellos *Hellos
	lo     link.Dialer
	// asks is true if HTTPS records are asked for.
	asks bool
}

// by returns the protocol of the answer, and its error.
func (v visits) by(name string) (protocol string, err error) {
	var records recordsFunc
	if v.asks {
		records = v.lo.Service
	}
	at := net.JoinHostPort("127.0.0.1", v.u.Port())
	config := &tls.Config{RootCAs: v.roots}
	by := v.hellos.HTTP3.Dialer(name, v.lo.Packets, records, v.lo.Dial, config)
	dial := func(ctx context.Context, _ string) (link.Socket, error) { return by(ctx, at) }
	conn := opened(v.t, link.NewPacer().Dialer(name, dial), v.roots, v.hellos, v.u)
	testkit.Same(v.t, conn.Socket.RemoteAddr().String(), at)
	_, err = conn.Head(v.t.Context(), Target{URL: v.u})
	return conn.Protocol, err
}

func (v visits) want(name, protocol string) {
	v.t.Helper()
	got, err := v.by(name)
	testkit.Holds(v.t, got == protocol && err == nil, got, err)
}

const overTCP, overQUIC = "TLS 1.3 h2", "TLS 1.3 h3"

func TestHTTP3IsSpokenWhereItIsOffered(t *testing.T) {
	var offer atomic.Value
	offer.Store("clear")
	u, certificate, roots := offerer(t, &offer)
	used := make(chan string, 9)
	alternative := serveHTTP3(t, certificate, func(w http.ResponseWriter, r *http.Request, _ *quic.Conn) {
		used <- r.Header.Get("Alt-Used")
		w.Header().Set("Alt-Svc", "clear")
	})
	_, port, _ := net.SplitHostPort(alternative)
	v := visits{t, u, roots, &Hellos{HTTP3: &HTTP3{}}, link.Dialer{Device: "lo"}, false}
	v.want("wifi", overTCP)
	offered := `h3=":` + port + `"`
	offer.Store(offered)
	v.want("wifi", overTCP)
	v.want("lte", overQUIC)
	testkit.Same(t, <-used, "host.example:"+port)
	offer.Store(offered + "; ma=0")
	v.want("wifi", overTCP) // The answer took the offer back.
	v.want("wifi", overTCP)
}

// A server that offers HTTP/3 where it fails is asked over TCP, by this link alone.
func TestALinkOverWhichHTTP3FailsUsesTCP(t *testing.T) {
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.OK(t, err)
	closed.Close()
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.OK(t, err)
	defer silent.Close()
	for name, at := range map[string]func(tls.Certificate) string{
		"closed": func(tls.Certificate) string { return closed.LocalAddr().String() },
		"silent": func(tls.Certificate) string { return silent.LocalAddr().String() },
		"other name": func(tls.Certificate) string {
			other, _ := testkit.Certificate("other.example")
			return serveHTTP3(t, other, func(http.ResponseWriter, *http.Request, *quic.Conn) {})
		},
		"misdirected": func(own tls.Certificate) string {
			return serveHTTP3(t, own, func(w http.ResponseWriter, _ *http.Request, _ *quic.Conn) {
				w.WriteHeader(http.StatusMisdirectedRequest)
			})
		},
		"ends": func(own tls.Certificate) string {
			return serveHTTP3(t, own, func(_ http.ResponseWriter, _ *http.Request, conn *quic.Conn) {
				conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), "enough")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var offer atomic.Value
			u, own, roots := offerer(t, &offer)
			_, port, _ := net.SplitHostPort(at(own))
			offer.Store(`h3=":` + port + `"`)
			v := visits{t, u, roots, &Hellos{HTTP3: &HTTP3{}}, link.Dialer{Device: "lo"}, false}
			v.want("wifi", overTCP)
			key := [2]string{"wifi", Address(u)}
			testkit.Same(t, fmt.Sprint(v.hellos.HTTP3.port(key)), port)
			if protocol, err := v.by("wifi"); protocol == overQUIC {
				testkit.Holds(t, err != nil)
				v.want("wifi", overTCP)
			}
			testkit.Same(t, v.hellos.HTTP3.port(key), 0)
			testkit.Same(t, fmt.Sprint(v.hellos.HTTP3.port([2]string{"lte", Address(u)})), port)
		})
	}
}
