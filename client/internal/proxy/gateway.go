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

// To a client all sites behind the gateway are one. It stores what belongs to one site (cookies,
// credentials, permissions of a page) for the address of the gateway, and sends it to the next
// site. So the gateway removes everything that a client would store, and tells sites apart by
// the page from which a request comes.

// visit is a request to a site behind the gateway.
type visit struct {
	site *url.URL
	// anonymous is true if another site sent the client here. The client's credentials belong
	// to that other site.
	anonymous bool
}

type visitKey struct{}

// visitOf returns the visit of a request, nil if it did not come through the gateway.
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
		// A client sends credentials for /https://HOST to all of /https:// (RFC 7617 2.2).
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

// isForeign reports whether a request comes from a page outside the gateway. Browsers send
// Origin with most requests that can do harm. They send Sec-Fetch-Site with all requests, but
// only to trustworthy addresses: to loopback, not to the rest of the network. Pages that came
// through the gateway are in a sandbox and have the origin "null".
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	return slices.ContainsFunc(r.Header.Values("Origin"), func(origin string) bool { return origin != "http://"+r.Host })
}

// refer rewrites Referer, which names a page by its URL at the gateway, to the page's own URL. A
// link from one site to another carries no credentials.
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

// anonymousPrefix begins the gateway's URLs in redirects from one site to another.
const anonymousPrefix = "anonymous/"

// gatewayURL returns the URL after the slash, and whether credentials must not be sent there.
// Some clients turn two slashes into one.
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

// gatewayPath returns the path that gatewayURL reads.
func gatewayPath(u *url.URL, anonymous bool) string {
	if anonymous {
		return "/" + anonymousPrefix + u.String()
	}
	return "/" + u.String()
}

// originOf returns the scheme, host and port of a URL without the default port (RFC 6454 6.2).
func originOf(u *url.URL) string {
	port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), port)
}

// ofOrigin are fields that hold for a site's whole origin. At the gateway all sites share one
// origin.
var ofOrigin = []string{
	"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Service-Worker-Allowed", "Report-To", "Nel",
}

// modify changes an answer before the client gets it.
func (v *visit) modify(response *http.Response) error {
	for _, name := range ofOrigin {
		response.Header.Del(name)
	}
	// A site's page does not belong to the gateway's origin.
	response.Header.Set("Content-Security-Policy", "sandbox")
	v.redirect(response.Header)
	return v.challenge(response)
}

// dots matches encoded dots (WHATWG URL, double-dot segments). In a path of the gateway they
// could lead from one site to another.
var dots = regexp.MustCompile(`(?i)%2e`)

// redirect rewrites a redirect to lead through the gateway, without credentials to another site.
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
	// A client might still make a path of the gateway from the rest.
}

// unboundError means that a site asks for credentials which the gateway cannot bind to it.
type unboundError struct{ reason string }

func (e *unboundError) Error() string { return e.reason }

// challenge binds a client's credentials to this site. A client stores credentials for a realm at
// the gateway's address, and another site could name the same realm. So the realm becomes the
// site if the scheme allows that. Other schemes do not pass the gateway: Digest, and those that
// authenticate a connection.
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
