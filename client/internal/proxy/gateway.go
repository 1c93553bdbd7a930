package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/linklab/linklab/client/internal/weburl"
)

// To a client all sites behind the gateway are one: it keeps what belongs to
// one (cookies, credentials, what a page may do) for the address of the
// gateway, and hands it to the next. So the gateway lets nothing through that
// a client would remember, and tells sites apart by where a request comes from.

// visit is a request to a site behind the gateway.
type visit struct {
	site *url.URL
	// anonymous says that another site sent the client here: its credentials
	// are not for this one.
	anonymous bool
}

type visitKey struct{}

// visitOf returns the visit that a request is; nil if it did not come through
// the gateway.
func visitOf(r *http.Request) *visit {
	v, _ := r.Context().Value(visitKey{}).(*visit)
	return v
}

// gateway serves /https://HOST/PATH.
func (p *Proxy) gateway(w http.ResponseWriter, r *http.Request) {
	if !isOurs(r.Host) {
		http.Error(w, fmt.Sprintf("multilink: %q is not this proxy: use its address", r.Host), http.StatusMisdirectedRequest)
		return
	}
	target, anonymous, ok := gatewayURL(r.RequestURI)
	switch {
	case !ok:
		http.Error(w, `multilink: this is a proxy for downloads over several links.
Use it as the HTTP proxy of a program, or put its address before a URL:
http://`+r.Host+`/https://HOST/PATH`, http.StatusNotFound)
		return
	case isForeign(r):
		http.Error(w, "multilink: the gateway is not for pages of other sites", http.StatusForbidden)
		return
	case target.User != nil:
		http.Error(w, "multilink: the URL holds credentials, which the gateway does not take: send them in Authorization", http.StatusBadRequest)
		return
	case slices.ContainsFunc(credentialSchemes(r.Header), authenticatesConnection):
		http.Error(w, "multilink: NTLM and Negotiate authenticate a connection, and say nothing of the site: they do not go through the gateway. Use it as an HTTP proxy", http.StatusForbidden)
		return
	case target.Path == "":
		// Credentials for /https://HOST are, to a client, for all of /https://
		// (RFC 7617 2.2).
		target.Path = "/"
		w.Header().Set("Location", gatewayPath(target, anonymous))
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	v := &visit{site: target, anonymous: anonymous}
	v.refer(r)
	if v.anonymous {
		r.Header.Del("Authorization")
	}
	r.Header.Del("Cookie")
	r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
	r.URL, r.Host = target, target.Host
	p.pass(w, r)
}

// isForeign reports whether a page that is not the gateway's makes a request.
// A browser says so in Origin with most requests that could do harm, and with
// all of them in Sec-Fetch-Site, but that only to addresses which it deems
// trustworthy: to loopback, not to the rest of the network. A page in a
// sandbox, as all are that come through the gateway, is of no origin, "null".
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	return slices.ContainsFunc(r.Header.Values("Origin"), func(origin string) bool { return origin != "http://"+r.Host })
}

// refer makes Referer, which names a page by its URL at the gateway, name it
// by its own. A link from one site to another takes no credentials along.
func (v *visit) refer(r *http.Request) {
	referer, err := url.Parse(r.Referer())
	if err != nil || referer.Host != r.Host {
		return
	}
	r.Header.Del("Referer")
	from, _, ok := gatewayURL(referer.RequestURI())
	switch {
	case !ok:
	case originOf(from) == originOf(v.site):
		r.Header.Set("Referer", from.String())
	default:
		v.anonymous = true
	}
}

// anonymousPrefix begins the gateway's URLs to which one site redirects from
// another.
const anonymousPrefix = "anonymous/"

// gatewayURL is the URL after the slash, and whether no credentials are to go
// there. Some clients make one slash of two.
func gatewayURL(uri string) (u *url.URL, anonymous, ok bool) {
	text, anonymous := strings.CutPrefix(strings.TrimPrefix(uri, "/"), anonymousPrefix)
	for _, scheme := range []string{"https", "http"} {
		if rest, ok := strings.CutPrefix(text, scheme+":/"); ok {
			u, err := weburl.Parse(scheme + "://" + strings.TrimPrefix(rest, "/"))
			return u, anonymous, err == nil && isWeb(u)
		}
	}
	return nil, false, false
}

// gatewayPath is what gatewayURL reads.
func gatewayPath(u *url.URL, anonymous bool) string {
	if anonymous {
		return "/" + anonymousPrefix + u.String()
	}
	return "/" + u.String()
}

// originOf is the scheme, host and port of a URL, without the scheme's own port
// (RFC 6454 6.2).
func originOf(u *url.URL) string {
	port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), port)
}

// ofOrigin are fields by which a site speaks for its whole origin, which at the
// gateway is that of all sites.
var ofOrigin = []string{
	"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Service-Worker-Allowed", "Report-To", "Nel",
}

// modify completes an answer for the way back.
func (v *visit) modify(response *http.Response) error {
	for _, name := range ofOrigin {
		response.Header.Del(name)
	}
	// What a site serves is no page of the gateway's origin.
	response.Header.Set("Content-Security-Policy", "sandbox")
	v.redirect(response.Header)
	return v.challenge(response)
}

// dots are dots as a client may read them (WHATWG URL, double-dot segments): in
// a path of the gateway they could lead from one site to another.
var dots = regexp.MustCompile(`(?i)%2e`)

// redirect leads on through the gateway: to another site, without credentials.
func (v *visit) redirect(header http.Header) {
	locations := header.Values("Location")
	header.Del("Location")
	if len(locations) == 0 {
		return
	}
	location := locations[0]
	path := len(location)
	if i := strings.IndexAny(location, "?#"); i >= 0 {
		path = i
	}
	to, err := weburl.Resolve(v.site, dots.ReplaceAllString(location[:path], ".")+location[path:])
	switch {
	case err != nil:
	case isWeb(to):
		to.User = nil
		if to.Path == "" {
			to.Path = "/"
		}
		header.Set("Location", gatewayPath(to, v.anonymous || originOf(to) != originOf(v.site)))
	case to.Scheme != "http" && to.Scheme != "https":
		header.Set("Location", location)
	}
	// Of what is left, a client might yet make a path of the gateway.
}

// unboundError says that a site asks for credentials which the gateway cannot
// bind to it.
type unboundError struct{ reason string }

func (e *unboundError) Error() string { return e.reason }

// challenge makes a client answer this site alone. It takes credentials to be
// for the realm, at the gateway's address, that the site names: another site
// could name the same. So the realm is the site, in schemes where nothing else
// depends on it; others (Digest, and those which authenticate a connection) do
// not go through the gateway.
func (v *visit) challenge(response *http.Response) error {
	asked := challenges(response.Header)
	if response.StatusCode == http.StatusUnauthorized && v.anonymous {
		return &unboundError{fmt.Sprintf("%s asks for credentials, and another site led here: what is meant for one is not for another. Begin at /%[1]s/", originOf(v.site))}
	}
	response.Header.Del("Www-Authenticate")
	for _, scheme := range []string{"basic", "bearer"} {
		if slices.Contains(asked, scheme) {
			response.Header.Add("Www-Authenticate", fmt.Sprintf("%s realm=%q", strings.ToUpper(scheme[:1])+scheme[1:], originOf(v.site)))
		}
	}
	if response.StatusCode == http.StatusUnauthorized && len(asked) > 0 && response.Header.Get("Www-Authenticate") == "" {
		return &unboundError{fmt.Sprintf("%s asks for credentials by %s, which the gateway cannot keep from other sites: allowed are Basic and Bearer. Use it as an HTTP proxy",
			originOf(v.site), strings.Join(asked, ", "))}
	}
	return nil
}
