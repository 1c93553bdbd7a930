package transport

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// reprDigest returns the SHA-256 of the whole resource from Repr-Digest, a dictionary
// such as sha-256=:BASE64:, sha-512=:BASE64: (RFC 9530 3; RFC 9651). It returns nil if
// the field is absent or malformed.
func reprDigest(header http.Header) []byte {
	var found []byte
	for member := range strings.SplitSeq(strings.Join(header.Values("Repr-Digest"), ","), ",") {
		key, value, _ := strings.Cut(strings.Trim(member, " \t"), "=")
		if key != "sha-256" {
			continue
		}
		value, _, _ = strings.Cut(value, ";")
		if len(value) < 2 || value[0] != ':' || value[len(value)-1] != ':' {
			return nil
		}
		sum, err := base64.StdEncoding.DecodeString(value[1 : len(value)-1])
		if err != nil || len(sum) != sha256.Size {
			return nil
		}
		// The last member with a name counts (RFC 9651 3.2).
		found = sum
	}
	return found
}
