// Package credentials keeps the user names and passwords that URLs may hold
// out of all that is stored, logged or shown.
package credentials

import (
	"encoding/base64"
	"net/url"
	"os"
	"strings"
	"unsafe"
)

// Cut returns the URL without its credentials, and these as the value of
// Authorization (Basic, RFC 7617); empty if there are none.
func Cut(u *url.URL) (bare *url.URL, authorization string) {
	bare = new(*u)
	bare.User = nil
	if u.User.String() == "" {
		return bare, ""
	}
	password, _ := u.User.Password()
	return bare, "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
}

// Hide returns what may be shown of a text that is, or should have been, a
// URL.
func Hide(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		if u.User == nil {
			return text
		}
		u.User = nil
		return u.String()
	}
	// Whatever is before an @ may be a password.
	at := strings.LastIndex(text, "@")
	if at < 0 {
		return text
	}
	scheme, _, ok := strings.Cut(text[:at], "://")
	if !ok {
		return "…" + text[at:]
	}
	return scheme + "://…" + text[at:]
}

// HideArgument overwrites the credentials of a URL among the arguments of this
// program: everybody can read those for as long as it runs (ps). What was
// made of the argument before may share its bytes, and must not be used if it
// holds credentials.
func HideArgument(argument string) {
	_, rest, ok := strings.Cut(argument, "://")
	if !ok {
		return
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if end := strings.LastIndex(authority, "@"); end > 0 {
		HideValue(rest[:end])
	}
}

// HideValue does the same with a part of an argument, which must not be used
// afterwards.
func HideValue(value string) {
	if value == "" {
		return
	}
	begin := uintptr(unsafe.Pointer(unsafe.StringData(value)))
	for _, a := range os.Args[1:] {
		// No other string can be written to.
		from := uintptr(unsafe.Pointer(unsafe.StringData(a)))
		if len(a) > 0 && begin >= from && begin+uintptr(len(value)) <= from+uintptr(len(a)) {
			shown := unsafe.Slice(unsafe.StringData(value), len(value))
			for i := range shown {
				shown[i] = '*'
			}
		}
	}
}
