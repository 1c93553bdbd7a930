// Package credentials removes the user names and passwords in URLs from everything that is stored,
// logged or shown.
package credentials

import (
	"encoding/base64"
	"net/url"
	"os"
	"strings"
	"unsafe"
)

// Cut returns the URL without its credentials, and these as the value of Authorization (Basic, RFC
// 7617), "" if there are none.
func Cut(u *url.URL) (public *url.URL, authorization string) {
	public = new(*u)
	public.User = nil
	if u.User.String() == "" {
		return public, ""
	}
	password, _ := u.User.Password()
	return public, "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
}

// Hide returns a text that is, or should be, a URL without its credentials.
func Hide(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		if u.User == nil {
			return text
		}
		u.User = nil
		return u.String()
	}
	// Everything before an @ may be a password.
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

// HideArgument overwrites the credentials in a URL among the arguments of this process, which every
// user can read while it runs (ps). Other strings made from the argument may share its bytes. They
// must not be used if they hold credentials.
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

// HideValue overwrites a part of an argument. The part must not be used afterwards.
func HideValue(value string) {
	if value == "" {
		return
	}
	begin := uintptr(unsafe.Pointer(unsafe.StringData(value)))
	for _, a := range os.Args[1:] {
		// Only strings in the arguments can be overwritten.
		from := uintptr(unsafe.Pointer(unsafe.StringData(a)))
		if len(a) > 0 && begin >= from && begin+uintptr(len(value)) <= from+uintptr(len(a)) {
			shown := unsafe.Slice(unsafe.StringData(value), len(value))
			for i := range shown {
				shown[i] = '*'
			}
		}
	}
}
