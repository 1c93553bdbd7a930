package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

func FuzzWantedRange(f *testing.F) {
	f.Add("bytes=0-")
	f.Add("bytes=5-9")
	f.Add("bytes=-5")
	f.Add("bytes=0-1,5-9")
	f.Fuzz(func(t *testing.T, value string) {
		ask := func(value string) (wanted, bool) {
			return wantedRange(&http.Request{Method: http.MethodGet, Header: http.Header{"Range": {value}}})
		}
		w, ok := ask(value)
		if !ok {
			return
		}
		if first := w.first(); !w.explicit || w.offset < 0 || first.Offset != w.offset || first.Length < 1 || first.Length > firstRange || first.End() > w.end {
			t.Fatalf("%q is %+v, and %+v is asked for first", value, w, first)
		}
		if again, ok := ask(transport.RangeHeader(ranges.Range{Offset: w.offset, Length: w.end - w.offset})); w.end != unbounded && (!ok || again != w) {
			t.Errorf("%q is %+v, which said again is %+v, %v", value, w, again, ok)
		}
	})
}

func FuzzGatewayURL(f *testing.F) {
	f.Add("/https://host/path?query")
	f.Add("/http:/user:secret@[::1]:8080/%2f#fragment")
	f.Add("/anonymous/https://host/path")
	f.Fuzz(func(t *testing.T, uri string) {
		u, anonymous, ok := gatewayURL(uri)
		if !ok {
			return
		}
		text, prefixed := strings.CutPrefix(strings.TrimPrefix(uri, "/"), anonymousPrefix)
		if !isWeb(u) || prefixed != anonymous || !strings.HasPrefix(text, u.Scheme) {
			t.Fatalf("%q leads to %s", uri, u)
		}
		// Redirects contain such a path.
		again, still, ok := gatewayURL(gatewayPath(u, anonymous))
		testkit.Holds(t, ok && still == anonymous && again.String() == u.String() && again.Host == u.Host, uri, u, u.Host, again, ok)
	})
}

// A redirect never brings credentials of one site to another.
func FuzzRedirect(f *testing.F) {
	for _, location := range []string{
		"https://b.example/y", "//b.example", "/y?z#w", "mailto:a@b.example", "", "?", "http:/https://b.example/",
		"https://a.example/%2e%2e/%2E%2e/.%2e/https://b.example/", "https://A.example:443/", "https://x:y@b.example/", `https:\\b.example\`,
		"../../../https://b.example/", "https://b.example/https://a.example/", "HTTPS:b.example",
	} {
		f.Add(location)
	}
	site := &url.URL{Scheme: "https", Host: "a.example", Path: "/x/"}
	gateway := &url.URL{Scheme: "http", Host: "127.0.0.1:8080"}
	f.Fuzz(func(t *testing.T, location string) {
		header := http.Header{"Location": {location}}
		(&visit{site: site}).redirect(header)
		text := header.Get("Location")
		if text == "" {
			return
		}
		// A client resolves the path, with dots as it reads them.
		to, err := gateway.Parse(gatewayPath(site, false))
		testkit.OK(t, err)
		if to, err = to.Parse(dots.ReplaceAllString(text, ".")); err != nil {
			return // This is no URL, with or without a gateway.
		}
		if to.Scheme != gateway.Scheme && to.Scheme != "https" {
			return
		}
		target, anonymous, ok := gatewayURL(to.EscapedPath())
		testkit.Holds(t, to.Host == gateway.Host && (!ok || anonymous || originOf(target) == "https://a.example"), location, text, to, anonymous)
	})
}
