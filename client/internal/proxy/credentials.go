package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// mayVary reports whether a request may be sent with another Range and Accept-Encoding, and
// more than once. A signature may cover these fields (RFC 9421 and its predecessors), and the
// answer to a challenge may be valid once (RFC 7616 3.4.5; RFC 9449 11.1).
func mayVary(header http.Header) bool {
	for _, name := range []string{"Signature", "Signature-Input", "Dpop"} {
		if header.Get(name) != "" {
			return false
		}
	}
	return !slices.ContainsFunc(header.Values("Authorization"), func(credentials string) bool {
		scheme := authScheme(credentials)
		return scheme != "basic" && scheme != "bearer"
	})
}

// authScheme returns the scheme of credentials in lower case.
func authScheme(credentials string) string {
	scheme, _, _ := strings.Cut(strings.TrimSpace(credentials), " ")
	return strings.ToLower(scheme)
}

// credentialSchemes returns the schemes of a request's credentials.
func credentialSchemes(header http.Header) (schemes []string) {
	for _, credentials := range header.Values("Authorization") {
		schemes = append(schemes, authScheme(credentials))
	}
	return schemes
}

// challenges returns the schemes that WWW-Authenticate offers, in lower case (RFC 9110 11.6.1).
// Its list also has parameters, which follow their scheme.
func challenges(header http.Header) (schemes []string) {
	quoted, escaped := false, false
	for member := range strings.FieldsFuncSeq(strings.Join(header.Values("Www-Authenticate"), ","), func(c rune) bool {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		return c == ',' && !quoted
	}) {
		member = strings.Trim(member, " \t")
		end := strings.IndexAny(member, " \t=")
		if end < 0 {
			end = len(member)
		}
		if rest := strings.TrimLeft(member[end:], " \t"); end > 0 && !strings.HasPrefix(rest, "=") {
			schemes = append(schemes, strings.ToLower(member[:end]))
		}
	}
	return schemes
}

// authenticatesConnection reports whether credentials of a scheme are valid for all requests
// of one connection, and for no other connection (RFC 4559 6; MS-NTHT).
func authenticatesConnection(scheme string) bool {
	return scheme == "ntlm" || scheme == "negotiate" || scheme == "kerberos"
}
