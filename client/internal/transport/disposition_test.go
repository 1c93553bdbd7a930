package transport

import (
	"net/http"
	"strings"
	"testing"
)

func TestDispositionName(t *testing.T) {
	for value, want := range map[string]string{
		`attachment; filename="a b.txt"`:                                       "a b.txt",
		`attachment; filename=a.txt`:                                           "a.txt",
		`attachment; filename=a b.txt`:                                         "a b.txt",
		`attachment; filename="e.txt"; filename*=UTF-8''%e2%82%ac%20rates.txt`: "€ rates.txt",
		`inline; FileName="a.txt"`:                                             "a.txt",
		"attachment; filename=\"m\xfcnchen.txt\"":                              "münchen.txt",
		`attachment; filename="münchen.txt"`:                                   "münchen.txt",
		`attachment; filename="../../etc/passwd"`:                              "passwd",
		`attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd`:                  "passwd",
		`attachment; filename="C:\\Windows\\a.exe"`:                            "a.exe",
		`attachment; filename=".bashrc"`:                                       "bashrc",
		`attachment; filename=".. "`:                                           "",
		`attachment; filename="/"`:                                             "",
		`attachment; filename*=UTF-8''a%0Ab`:                                   "",
		"attachment; filename=\"a\x1b[2J\"":                                    "",
		`attachment; filename*=UTF-8''a%E2%80%AEexe.txt`:                       "",
		// Another part is malformed.
		`attachment; filename="a;b.txt"; x`:                             "a;b.txt",
		`attachment; x y; filename*=UTF-8''%e2%82%ac.txt; filename="e"`: "€.txt",
		`attachment; filename="e.txt"; filename*=UTF-8''%zz.txt`:        "e.txt",
		`attachment; filename="e.txt"; filename*=ISO-8859-1'en'%e4; =`:  "ä",
		`attachment; filename*=x''a.txt; filename=b.txt; x`:             "b.txt",
		`attachment; filename="a\"b.txt"; x`:                            `a"b.txt`,
		`attachment; filename="a.txt; x`:                                "a.txt",
		`a/b/c; filename=a.txt`:                                         "a.txt",
		`filename="a.txt"`:                                              "a.txt",
		`attachment`:                                                    "",
		`attachment; filename=""`:                                       "",
		`attachment; filename="a.` + strings.Repeat("x", 3) + ` "`:      "a.xxx",
	} {
		if got := dispositionName(http.Header{"Content-Disposition": {value}}); got != want {
			t.Errorf("%q proposes %q, want %q", value, got, want)
		}
	}
}
