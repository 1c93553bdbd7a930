package transport

import (
	"errors"
	"net/http"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// A web page in place of a file comes from a captive portal, unless it has ranges.
func TestAPortalIsRecognized(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		header http.Header
		isFile bool
		want   bool
	}{
		"page":                {200, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, true, true},
		"XHTML":               {200, http.Header{"Content-Type": {"Application/XHTML+XML"}}, true, true},
		"a page is wanted":    {200, http.Header{"Content-Type": {"text/html"}}, false, false},
		"page with ranges":    {200, http.Header{"Content-Type": {"text/html"}, "Accept-Ranges": {"bytes"}}, true, false},
		"part of a page":      {206, http.Header{"Content-Type": {"text/html"}}, true, false},
		"page of an error":    {404, http.Header{"Content-Type": {"text/html"}}, true, false},
		"file":                {200, http.Header{"Content-Type": {"application/octet-stream"}}, true, false},
		"no type":             {200, http.Header{}, true, false},
		"malformed parameter": {200, http.Header{"Content-Type": {"text/html; a"}}, true, true},
		"login":               {511, http.Header{}, false, true},
	} {
		err := Target{IsFile: test.isFile}.checkPortal(&http.Response{StatusCode: test.code, Header: test.header, ContentLength: -1})
		testkit.Same(t, errors.As(err, new(*PortalError)), test.want, name)
	}
}
