package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
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
	f.Fuzz(func(t *testing.T, uri string) {
		u, ok := gatewayURL(uri)
		if !ok {
			return
		}
		if !isWeb(u) || !strings.HasPrefix(strings.TrimPrefix(uri, "/"), u.Scheme) {
			t.Fatalf("%q leads to %s", uri, u)
		}
		// Redirects lead through the gateway by such a text.
		again, ok := gatewayURL("/" + u.String())
		if !ok || again.String() != u.String() || again.Host != u.Host {
			t.Errorf("%q leads to %q of host %q, which said again is %v, %v", uri, u, u.Host, again, ok)
		}
	})
}
