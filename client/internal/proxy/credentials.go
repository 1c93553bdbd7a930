package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// mayVary reports whether a request proves who sends it in a way that holds
// with another Range and Accept-Encoding, too, and more than once. A signature
// may cover these fields (RFC 9421, and what came before it), and the answer to
// a challenge may count once (RFC 7616, 3.4.5; RFC 9449, 11.1).
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

// authScheme is the scheme of credentials, in lower case.
func authScheme(credentials string) string {
	scheme, _, _ := strings.Cut(strings.TrimSpace(credentials), " ")
	return strings.ToLower(scheme)
}
