package transport

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestReprDigest(t *testing.T) {
	sum := sha256.Sum256([]byte("text"))
	encoded := ":" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	for _, test := range []struct {
		values []string
		found  bool
	}{
		{[]string{"sha-256=" + encoded}, true},
		{[]string{"sha-512=:AAAA:, sha-256=" + encoded + ";x=1"}, true},
		{[]string{"sha-512=:AAAA:", "sha-256=" + encoded}, true},
		{[]string{"sha-256=:AAAA:, sha-256=" + encoded}, false},
		{[]string{"sha-256=" + encoded[1:]}, false},
		{[]string{"sha-256=:AAAA:"}, false},
		{[]string{"sha-256"}, false},
		{[]string{""}, false},
		{nil, false},
	} {
		header := http.Header{"Repr-Digest": test.values}
		if got := reprDigest(header); (got != nil) != test.found || got != nil && [32]byte(got) != sum {
			t.Errorf("%q gives %x", test.values, got)
		}
	}
}

func FuzzReprDigest(f *testing.F) {
	f.Add("sha-256=:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=:")
	f.Add("sha-512=:AAAA:, sha-256=:::")
	f.Fuzz(func(t *testing.T, value string) {
		if sum := reprDigest(http.Header{"Repr-Digest": {value}}); sum != nil && len(sum) != sha256.Size {
			t.Errorf("%q gives %x", value, sum)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"120":                           2 * time.Minute,
		"0":                             0,
		"-1":                            0,
		"1.5":                           0,
		"soon":                          0,
		"":                              0,
		"99999999999999999999":          0,
		"Sat, 01 Jan 2000 00:00:30 GMT": 30 * time.Second,
		"Fri, 31 Dec 1999 23:59:59 GMT": 0,
		"Fri, 31 Dec 9999 23:59:59 GMT": mostRetryAfter,
	} {
		testkit.Same(t, retryAfter(value, now), want, value)
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Sat, 01 Jan 2000 00:00:30 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if got := retryAfter(value, time.Unix(0, 0)); got < 0 || got > mostRetryAfter {
			t.Errorf("%q is %v", value, got)
		}
	})
}
