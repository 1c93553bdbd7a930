package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// intranet authenticates connections as NTLM does: two requests on a connection authenticate
// all later ones on it.
type intranet struct {
	mu    sync.Mutex
	stage map[string]int // By connection.
}

func (s *intranet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Header.Get("Authorization") {
	case "NTLM hello":
		s.stage[r.RemoteAddr] = 1
		w.Header().Set("WWW-Authenticate", "NTLM challenge")
	case "NTLM answer":
		if s.stage[r.RemoteAddr] == 1 {
			s.stage[r.RemoteAddr] = 2
		}
	}
	if s.stage[r.RemoteAddr] == 2 {
		content(w, r)
		return
	}
	w.Header().Add("WWW-Authenticate", "NTLM")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprint(w, "who are you?")
}

// A connection that one client authenticated is not used for another client.
func TestAnAuthenticatedConnectionIsPinned(t *testing.T) {
	for _, name := range []string{"first link", "second link"} {
		t.Run(name, func(t *testing.T) {
			o := serve(t, false, (&intranet{stage: map[string]int{}}).ServeHTTP)
			address, counts := start(t, nil, func(o *Options) {
				if name == "second link" {
					o.Engine.Links[0].Dial = unreachable
				}
			})
			alice, mallory := through(t, address), through(t, address)
			refused := func(of string, client *http.Client) {
				t.Helper()
				for range 3 {
					response, _ := get(t, client, o.URL+"/f")
					testkit.Same(t, response.StatusCode, 401, of)
					testkit.Same(t, response.Header.Get("Proxy-Support"), "Session-Based-Authentication")
				}
			}
			refused("who says nothing", alice)
			if response, _ := get(t, alice, o.URL+"/f", "Authorization", "NTLM hello"); response.StatusCode != 401 {
				t.Fatalf("who says hello gets %s", response.Status)
			}
			expectFile(t, alice, o.URL+"/f", "Authorization", "NTLM answer")
			refused("another client", mallory)
			// It serves all later requests of the client.
			for range 2 {
				if response, got := get(t, alice, o.URL+"/f", "Range", "bytes=1000-"); response.StatusCode != 206 || !bytes.Equal(got, file[1000:]) {
					t.Errorf("whoever answered gets %s", response.Status)
				}
			}
			if response, _ := do(t, alice, http.MethodPost, o.URL+"/f", bytes.NewReader(file[:100_000])); response.StatusCode != 200 {
				t.Errorf("whoever answered gets %s", response.Status)
			}
			refused("another client", mallory)
			// It ends with the client's connection.
			alice.CloseIdleConnections()
			refused("who has come anew", alice)
			used := map[string]string{"first link": "wifi", "second link": "lte"}[name]
			if n, _ := counts.Load(used); n == nil || n.(quantity.Bytes) < quantity.Bytes(len(file)) {
				t.Errorf("%v bytes were counted on %s", n, used)
			}
		})
	}
}

// The gateway pins no connections.
func TestTheGatewayAuthenticatesNoConnection(t *testing.T) {
	o := serve(t, false, (&intranet{stage: map[string]int{}}).ServeHTTP)
	address, _ := start(t, nil, nil)
	for _, authorization := range []string{"NTLM hello", "negotiate YII=", "Kerberos x"} {
		response, text := get(t, direct(t), "http://"+address+"/"+o.URL+"/f", "Authorization", authorization)
		testkit.Holds(t, response.StatusCode == 403 && bytes.Contains(text, []byte("Use it as an HTTP proxy")), authorization, response.Status, text)
	}
	testkit.Holds(t, len(o.seen()) <= 0, "the site was asked")
}

// An authenticated connection is closed when its client goes.
func TestAPinnedConnectionEndsWithItsClient(t *testing.T) {
	o := serve(t, false, (&intranet{stage: map[string]int{}}).ServeHTTP)
	address, closed := startNoticed(t)
	client := through(t, address)
	get(t, client, o.URL+"/f", "Authorization", "NTLM hello")
	select {
	case <-closed:
		t.Fatal("the connection is closed while the client is there")
	default:
	}
	client.CloseIdleConnections()
	<-closed
}

func TestChallenges(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   string
	}{
		{nil, "[]"},
		{[]string{""}, "[]"},
		{[]string{"NTLM"}, "[ntlm]"},
		{[]string{"Negotiate YII=", "NTLM"}, "[negotiate ntlm]"},
		{[]string{`Newauth realm="apps", type=1, title="Login to \"apps\", Basic x", Basic realm="simple"`}, "[newauth basic]"},
		{[]string{`Digest realm = "a",nonce="b" , qop="auth,auth-int",NTLM TlRMTVNTUAAC==`}, "[digest ntlm]"},
		{[]string{`realm="nobody's", =x, , Basic`}, "[basic]"},
	} {
		testkit.Same(t, fmt.Sprint(challenges(http.Header{"Www-Authenticate": test.values})), test.want, test.values)
	}
}

// An authenticated connection is on one link, so no other link is used.
func TestAPinnedConnectionStaysOnItsLink(t *testing.T) {
	o := serve(t, false, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) })
	dials := map[string]int{}
	var own *routes
	start(t, nil, func(o *Options) {
		for i, l := range o.Engine.Links {
			o.Engine.Links[i].Dial = func(ctx context.Context, address string) (link.Socket, error) {
				dials[l.Name]++
				if dials["wifi"] == 1 && l.Name == "wifi" {
					return unreachable(ctx, address)
				}
				return l.Dial(ctx, address)
			}
		}
		own = newRoutes(o.Engine, nil).newPinned()
	})
	defer own.close()
	var first string
	for range 2 {
		request, _ := http.NewRequest(http.MethodGet, o.URL+"/f", nil)
		response, err := own.RoundTrip(request)
		testkit.OK(t, err)
		at := string(readAll(t, response))
		if first == "" {
			first = at
		}
		testkit.Same(t, at, first)
		// The failure of the first link is forgotten after a while.
		for _, route := range own.all {
			route.failed = time.Time{}
		}
	}
	testkit.Holds(t, dials["wifi"] == 1 && dials["lte"] == 1, dials)
}

// A client whose own connections fail for a while still gets other answers, because the failure
// is forgotten.
func TestAPinnedConnectionThatCanNotBeMadeAgain(t *testing.T) {
	o := serve(t, false, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Authorization")) })
	var mu sync.Mutex
	broken := false
	address, _ := start(t, nil, func(o *Options) {
		for i, l := range o.Engine.Links {
			o.Engine.Links[i].Dial = func(ctx context.Context, address string) (link.Socket, error) {
				mu.Lock()
				defer mu.Unlock()
				if broken && l.Name == "wifi" {
					return unreachable(ctx, address)
				}
				return l.Dial(ctx, address)
			}
		}
	})
	client := through(t, address)
	if response, got := get(t, client, o.URL+"/f", "Authorization", "NTLM x"); response.StatusCode != 200 || string(got) != "NTLM x" {
		t.Fatalf("%s %q", response.Status, got)
	}
	mu.Lock()
	broken = true
	mu.Unlock()
	o.CloseClientConnections()
	if response, _ := do(t, client, http.MethodPost, o.URL+"/f", bytes.NewReader(file[:10])); response.StatusCode != 502 {
		t.Errorf("over the link that is gone: %s", response.Status)
	}
	if response, got := get(t, client, o.URL+"/f", "Authorization", "NTLM y"); response.StatusCode != 200 || string(got) != "NTLM y" {
		t.Errorf("over the other link: %s %q", response.Status, got)
	}
}
