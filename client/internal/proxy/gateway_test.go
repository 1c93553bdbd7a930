package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// site is an origin that redirects to ?to=, and sends the challenge ?ask= without credentials.
func site(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case query.Has("to"):
		w.Header().Set("Location", query.Get("to"))
		w.WriteHeader(http.StatusFound)
	case query.Has("ask") && r.Header.Get("Authorization") == "":
		w.Header()["Www-Authenticate"] = query["ask"]
		w.WriteHeader(http.StatusUnauthorized)
	default:
		fmt.Fprint(w, "here you are")
	}
}

// following returns a client that follows redirects. It sends its credentials to the same host.
func following(t *testing.T) *http.Client {
	c := direct(t)
	c.CheckRedirect = nil
	return c
}

// A client that is led from one site to another in any way does not bring credentials along.
func TestCredentialsStayWithTheirSite(t *testing.T) {
	a, b := serve(t, false, site), serve(t, false, site)
	address, _ := start(t, nil, nil)
	gateway := "http://" + address + "/"
	_, portOfB, _ := net.SplitHostPort(strings.TrimPrefix(b.URL, "http://"))
	for _, to := range []string{
		b.URL + "/x", strings.TrimPrefix(b.URL, "http:") + "/x", "http://user:pw@127.0.0.1:" + portOfB + "/x",
		"/%2e%2e/%2e%2e/%2e%2e/" + b.URL + "/x", "http:/" + b.URL + "/x",
		b.URL + "/x?to=" + a.URL + "/back", b.URL + "/x?to=/y", b.URL,
	} {
		before := len(a.seen())
		response, _ := get(t, following(t), gateway+a.URL+"/f?to="+to, "Authorization", "Basic YTpi", "Proxy-Authorization", "Basic cDpw", "Cookie", "c=d")
		asked := a.seen()[before:]
		testkit.Same(t, asked[0].Header.Get("Authorization"), "Basic YTpi", to)
		for _, r := range slices.Concat(asked, b.seen()) {
			trusted := r.Host == asked[0].Host && r.URL.Path != "/back"
			if !trusted && r.Header.Get("Authorization") != "" || r.Header.Get("Proxy-Authorization") != "" || r.Header.Get("Cookie") != "" {
				t.Errorf("%s: %s%s got %v", to, r.Host, r.URL, r.Header)
			}
		}
		testkit.Holds(t, !strings.HasPrefix(to, b.URL) || response.StatusCode == http.StatusOK, to, response.Status)
	}
	testkit.Holds(t, len(b.seen()) != 0, "nobody came to the other site")
	// Within a site credentials are sent.
	before := len(a.seen())
	get(t, following(t), gateway+a.URL+"/f?to=/g?to="+a.URL+"/h", "Authorization", "Basic YTpi")
	asked := a.seen()[before:]
	testkit.Holds(t, len(asked) == 3 && asked[1].Header.Get("Authorization") != "" && asked[2].Header.Get("Authorization") != "", asked)
}

// A link to another site carries no credentials either, and Referer has the page's own URL.
func TestLinksBetweenSites(t *testing.T) {
	o := serve(t, false, site)
	address, _ := start(t, nil, nil)
	gateway := "http://" + address + "/"
	for _, test := range []struct{ referer, passed, authorization string }{
		{gateway + o.URL + "/page?q", o.URL + "/page?q", "Bearer x"},
		{gateway + "anonymous/" + o.URL + "/page", o.URL + "/page", "Bearer x"},
		{gateway + "https://other.example/page", "", ""},
		{gateway, "", "Bearer x"},
		{"https://other.example/page", "https://other.example/page", "Bearer x"},
	} {
		before := len(o.seen())
		get(t, direct(t), gateway+o.URL+"/f", "Referer", test.referer, "Authorization", "Bearer x")
		got := o.seen()[before].Header
		if got.Get("Referer") != test.passed || got.Get("Authorization") != test.authorization {
			t.Errorf("from %s: the site got Referer %q, Authorization %q", test.referer, got.Get("Referer"), got.Get("Authorization"))
		}
	}
}

// A client stores credentials for a realm and a path of the gateway's address. Both belong to
// the site.
func TestChallengesOfSites(t *testing.T) {
	o := serve(t, false, site)
	address, _ := start(t, nil, nil)
	gateway := "http://" + address + "/"
	for _, test := range []struct {
		ask    []string
		status int
		want   []string
		text   string
	}{
		{[]string{`Basic realm="of another"`}, 401, []string{`Basic realm="` + o.URL + `"`}, ""},
		{[]string{`Negotiate`, `NTLM, basic realm="a, Digest b", charset="UTF-8"`}, 401, []string{`Basic realm="` + o.URL + `"`}, ""},
		{[]string{`Bearer realm="https://auth.example/token", error="x"`}, 401, []string{`Bearer realm="` + o.URL + `"`}, ""},
		{[]string{`Digest realm="x", nonce="y"`, "NTLM"}, 403, nil, "asks for credentials by digest, ntlm, which the gateway cannot keep from other sites"},
		{[]string{`Negotiate oRQwEqADCgEB`}, 403, nil, "by negotiate"},
	} {
		query := "/f?ask=" + strings.Join(test.ask, "&ask=")
		response, text := get(t, direct(t), gateway+o.URL+strings.ReplaceAll(query, " ", "+"))
		if got := response.Header.Values("Www-Authenticate"); response.StatusCode != test.status || !slices.Equal(got, test.want) || !strings.Contains(string(text), test.text) {
			t.Errorf("%q: %s with %q %q", test.ask, response.Status, got, text)
		}
	}
	response, text := get(t, direct(t), gateway+"anonymous/"+o.URL+"/f?ask=Basic", "Authorization", "Basic YTpi")
	testkit.Holds(t, response.StatusCode == 403 && strings.Contains(string(text), "Begin at /"+o.URL+"/"), response.Status, text)
	for path, want := range map[string]string{"": "", "anonymous/": "anonymous/"} {
		response, _ = get(t, direct(t), gateway+path+o.URL+"?q")
		if response.StatusCode != 308 || response.Header.Get("Location") != "/"+want+o.URL+"/?q" {
			t.Errorf("a site without a path: %s to %q", response.Status, response.Header.Get("Location"))
		}
	}
}

// Fields for a site's whole origin are removed.
func TestASiteDoesNotSpeakForTheGateway(t *testing.T) {
	o := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range ofOrigin {
			w.Header().Set(name, "x")
		}
		w.Header().Set("Content-Security-Policy", "default-src *")
		http.Error(w, "x", http.StatusNotFound)
	})
	address, _ := start(t, nil, nil)
	response, _ := get(t, direct(t), "http://"+address+"/"+o.URL+"/f")
	for _, name := range ofOrigin {
		testkit.Same(t, response.Header.Get(name), "")
	}
	testkit.SameList(t, response.Header.Values("Content-Security-Policy"), []string{"sandbox"})
}

// Browsers tell which page makes a request: fully on loopback, only by Origin on other
// addresses.
func TestPagesOfOthers(t *testing.T) {
	o := serve(t, false, site)
	address, _ := start(t, nil, nil)
	_, port, _ := net.SplitHostPort(address)
	for _, test := range []struct {
		method, host string
		header       []string
		status       int
	}{
		{"GET", "", nil, 200},
		{"GET", "", []string{"Sec-Fetch-Site", "none"}, 200},
		{"GET", "", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://" + address}, 200},
		{"GET", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", "192.168.1.2:8080", []string{"Origin", "http://192.168.1.2:8080"}, 200},
		{"GET", "192.168.1.2:8080", []string{"Origin", "https://evil.example"}, 403},
		{"POST", "192.168.1.2:8080", []string{"Origin", "http://192.168.1.2:3000"}, 403},
		{"POST", "192.168.1.2:8080", []string{"Origin", "null"}, 403},
		{"OPTIONS", "192.168.1.2:8080", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "PUT"}, 403},
		{"GET", "192.168.1.2:8080", []string{"Origin", "https://evil.example", "Connection", "Upgrade", "Upgrade", "websocket"}, 403},
		// This name was made to resolve to the gateway.
		{"GET", "evil.example:" + port, []string{"Origin", "http://evil.example:" + port}, 421},
		{"GET", "127.0.0.1.evil.example:" + port, nil, 421},
		{"GET", "localhost.evil.example", nil, 421},
		{"GET", "localhost.", nil, 421},
	} {
		request, _ := http.NewRequest(test.method, "http://"+address+"/"+o.URL+"/f", nil)
		request.Host = test.host
		for i := 0; i < len(test.header); i += 2 {
			request.Header.Set(test.header[i], test.header[i+1])
		}
		before := len(o.seen())
		response, err := direct(t).Do(request)
		testkit.OK(t, err)
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if reached := len(o.seen()) > before; response.StatusCode != test.status || reached != (test.status == 200) {
			t.Errorf("%s of %q with %q: %s, reached the site: %v", test.method, test.host, test.header, response.Status, reached)
		}
	}
}
