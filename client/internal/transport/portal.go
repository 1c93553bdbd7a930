package transport

import (
	"fmt"
	"net/http"
	"strings"
)

// PortalError means that a captive portal answered in place of the server: it wants a login
// first. Later the server itself may answer.
type PortalError struct{ symptom string }

func (e *PortalError) Error() string {
	return e.symptom + ", as a captive portal answers: log in to this link's network"
}

// IsPage reports whether a response carries a web page. It does not use package mime, which
// makes maps, for which Go draws random numbers (see RangeHeader).
func IsPage(header http.Header) bool {
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	return strings.EqualFold(kind, "text/html") || strings.EqualFold(kind, "application/xhtml+xml")
}

// checkPortal returns an error if a captive portal answered the request for the target. A
// server that serves ranges of a page serves a file.
func (t Target) checkPortal(response *http.Response) error {
	switch {
	case response.StatusCode == http.StatusNetworkAuthenticationRequired:
		return &PortalError{"the answer is 511 Network Authentication Required"}
	case t.IsFile && response.StatusCode == http.StatusOK && IsPage(response.Header) && !strings.EqualFold(response.Header.Get("Accept-Ranges"), "bytes"):
		size := ""
		if response.ContentLength >= 0 {
			size = fmt.Sprintf(" of %d bytes", response.ContentLength)
		}
		return &PortalError{"the answer is a web page" + size + " instead of the file"}
	}
	return nil
}
