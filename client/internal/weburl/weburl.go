// Package weburl parses URLs as people and servers write them: with spaces, letters of any script,
// and internationalized host names (IDN).
package weburl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// Parse parses a URL or a relative reference. It encodes what no URL may contain, and keeps what is
// encoded already.
func Parse(text string) (*url.URL, error) {
	text, err := encoded(text)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("it is malformed") // The error of net/url may contain credentials.
	}
	return u, toASCII(u)
}

// Resolve returns the URL to which the server of base redirects by location.
func Resolve(base *url.URL, location string) (*url.URL, error) {
	to, err := Parse(location)
	if err != nil {
		return nil, err
	}
	return base.ResolveReference(to), nil
}

// lookup is idna.Lookup that also refuses labels which are empty or too long.
var lookup = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(true))

// toASCII changes a host name to the form that DNS, TLS and HTTP use (RFC 5891).
func toASCII(u *url.URL) error {
	name := u.Hostname()
	if isASCII(name) {
		return nil
	}
	host, err := lookup.ToASCII(name)
	if err != nil {
		return fmt.Errorf("the host name %q is no internationalized domain name", name)
	}
	if port := u.Port(); port != "" {
		host = net.JoinHostPort(host, port)
	}
	u.Host = host
	return nil
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 0x7e }) < 0
}

// encoded encodes what no URL may contain after the host (WHATWG URL, percent-encode sets). In a
// path it also encodes what net/url would encode: net/url would decode the rest at the same time.
func encoded(text string) (string, error) {
	text = strings.Trim(text, " ")
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return "", errors.New("it holds a control character")
		}
	}
	rest := 0
	if i := strings.Index(text, "://"); i >= 0 && !strings.ContainsAny(text[:i], "/?#") {
		rest = i + len("://")
	} else if strings.HasPrefix(text, "//") {
		rest = len("//")
	}
	if rest > 0 {
		end := strings.IndexAny(text[rest:], "/?#")
		if end < 0 {
			return text, nil
		}
		rest += end
	}
	var out strings.Builder
	out.WriteString(text[:rest])
	forbidden, isPath := ` "<>\^`+"`{|}", true
	for i := rest; i < len(text); i++ {
		c := text[i]
		if isPath && (c == '?' || c == '#') {
			forbidden, isPath = ` "<>`, false
		}
		stray := isPath && c == '%' && !isEscape(text[i:])
		if stray || c > 0x7e || strings.IndexByte(forbidden, c) >= 0 {
			fmt.Fprintf(&out, "%%%02X", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String(), nil
}

// isEscape reports whether a text begins with a percent-encoded byte.
func isEscape(text string) bool {
	const digits = "0123456789abcdefABCDEF"
	return len(text) > 2 && strings.IndexByte(digits, text[1]) >= 0 && strings.IndexByte(digits, text[2]) >= 0
}
