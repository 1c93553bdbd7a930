package weburl

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"https://h/a b?c d":                "https://h/a%20b?c%20d",
		" https://h/a ":                    "https://h/a",
		"https://h/a%20b?c%20d+e":          "https://h/a%20b?c%20d+e",
		"https://h/a%2Fb c|d":              "https://h/a%2Fb%20c%7Cd",
		"https://h/ü?ü=%C3%BC":             "https://h/%C3%BC?%C3%BC=%C3%BC",
		"https://h/\xff":                   "https://h/%FF",
		"https://h/100%.txt?100%":          "https://h/100%25.txt?100%",
		"https://h/[a]{b}?{c}|[d]":         "https://h/[a]%7Bb%7D?{c}|[d]",
		`https://h/a\b?"c"<d>`:             `https://h/a%5Cb?%22c%22%3Cd%3E`,
		"https://h?a b":                    "https://h?a%20b",
		"https://münchen.test:8443/a b":    "https://xn--mnchen-3ya.test:8443/a%20b",
		"https://M%C3%BCnchen.test/":       "https://xn--mnchen-3ya.test/",
		"https://例え。テスト/":                  "https://xn--r8jz45g.xn--zckzah/",
		"https://u:p%20w@münchen.test/":    "https://u:p%20w@xn--mnchen-3ya.test/",
		"https://münchen.test./":           "https://xn--mnchen-3ya.test./",
		"https://a_b.test/":                "https://a_b.test/",
		"https://[fe80::1%25eth0]:1/a b":   "https://[fe80::1%25eth0]:1/a%20b",
		"http://h/a?u=https://h/x y#f g":   "http://h/a?u=https://h/x%20y#f%20g",
		"https://h/a?b=1&sig=x%2By%2Fz%3D": "https://h/a?b=1&sig=x%2By%2Fz%3D",
	} {
		if u, err := Parse(text); err != nil || u.String() != want {
			t.Errorf("%q is read as %v (error %v), want %s", text, u, err, want)
		}
	}
	for text, want := range map[string]string{
		"https://mün..chen.test/":   `the host name "mün..chen.test" is no internationalized domain name`,
		"https://-ü-.test/":         "is no internationalized domain name",
		"https://ü\u2028x.test/":    "is no internationalized domain name",
		"https://ü／etc/":            "is no internationalized domain name",
		"https://h/a\nHost: x":      "it holds a control character",
		"https://h/\x7f":            "it holds a control character",
		"https://u:secret@h:port/x": "it is malformed",
	} {
		if u, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is read as %v, error %v, want %s", text, u, err, want)
		}
	}
}

func TestResolve(t *testing.T) {
	base := &url.URL{Scheme: "https", Host: "h:1", Path: "/a/b"}
	for location, want := range map[string]string{
		"c d?e f":              "https://h:1/a/c%20d?e%20f",
		"/ü":                   "https://h:1/%C3%BC",
		"?q r":                 "https://h:1/a/b?q%20r",
		"//münchen.test/a b":   "https://xn--mnchen-3ya.test/a%20b",
		"https://g/%7Ea b%2F?": "https://g/%7Ea%20b%2F?",
	} {
		if to, err := Resolve(base, location); err != nil || to.String() != want {
			t.Errorf("%q leads to %v (error %v), want %s", location, to, err, want)
		}
	}
}

// FuzzParse checks that a parsed URL parses to itself, and that net/http sends it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"https://h/a b%2f?c d", "https://münchen.test:1/%", "//h", "a:b", "https://h/%zz?%#%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := Parse(text)
		if err != nil || u.Host == "" || u.Opaque != "" {
			return
		}
		again, err := Parse(u.String())
		testkit.Holds(t, err == nil && again.String() == u.String(), text, u, again, err)
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil || u.Path != "" && request.URL.EscapedPath() != u.EscapedPath() || request.URL.RawQuery != u.RawQuery {
			t.Errorf("%q is sent as %q (error %v)", text, u.RequestURI(), err)
		}
	})
}
