// Package cookies keeps cookies (RFC 6265). It reads and writes Netscape's cookies.txt, like curl,
// aria2 and tools for browsers.
package cookies

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

// most limits the cookies of a domain, as in browsers.
const most = 180

// Jar is an http.CookieJar whose cookies can be written.
type Jar struct {
	mu    sync.Mutex
	inner *cookiejar.Jar
	kept  map[place]*http.Cookie
	// counts holds the number of cookies of each domain.
	counts map[string]int
}

// place identifies a cookie. The domain begins with a dot if the cookie is also for the hosts below
// it.
type place struct{ domain, path, name string }

// New returns an empty jar.
func New() *Jar {
	inner, _ := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // This never fails.
	return &Jar{inner: inner, kept: map[place]*http.Cookie{}, counts: map[string]int{}}
}

// Cookies implements http.CookieJar.
func (j *Jar) Cookies(u *url.URL) []*http.Cookie { return j.inner.Cookies(u) }

// SetCookies implements http.CookieJar.
func (j *Jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range cookies {
		at := placeOf(u, c)
		_, known := j.kept[at]
		if !known && j.counts[at.domain] >= most {
			continue
		}
		j.inner.SetCookies(u, []*http.Cookie{c})
		c := *c
		if c.MaxAge > 0 {
			c.Expires = time.Now().Add(time.Duration(c.MaxAge) * time.Second)
		}
		// Only the inner jar knows whether it has accepted the cookie.
		asked := &url.URL{Scheme: "https", Host: u.Host, Path: at.path}
		if slices.ContainsFunc(j.inner.Cookies(asked), func(other *http.Cookie) bool { return other.Name == c.Name && other.Value == c.Value }) {
			j.kept[at] = &c
		} else {
			delete(j.kept, at)
		}
		if _, is := j.kept[at]; is && !known {
			j.counts[at.domain]++
		} else if known && !is {
			j.counts[at.domain]--
		}
	}
}

func placeOf(u *url.URL, c *http.Cookie) place {
	at := place{strings.ToLower(u.Hostname()), c.Path, c.Name}
	if domain := strings.ToLower(strings.TrimPrefix(c.Domain, ".")); domain != "" && net.ParseIP(domain) == nil {
		at.domain = "." + domain
	}
	if !strings.HasPrefix(at.path, "/") {
		at.path = path.Dir("/" + strings.TrimPrefix(u.Path, "/") + ".") // RFC 6265 5.1.4.
	}
	return at
}

// httpOnly begins the line of a cookie that scripts cannot read.
const httpOnly = "#HttpOnly_"

// Read adds the cookies of a cookies.txt.
func (j *Jar) Read(text string) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, isHTTPOnly := strings.CutPrefix(strings.TrimRight(line, "\r\n"), httpOnly)
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) == 6 {
			fields = append(fields, "") // The value is empty.
		}
		if len(fields) != 7 {
			return fmt.Errorf("line %d has %d fields: allowed are 7, separated by tabs", number, len(fields))
		}
		expires, err := strconv.ParseInt(cmp.Or(fields[4], "0"), 10, 64)
		if err != nil {
			return fmt.Errorf("line %d: the fifth field is no time in seconds since 1970", number)
		}
		host := strings.TrimPrefix(fields[0], ".")
		c := &http.Cookie{Name: fields[5], Value: fields[6], Path: fields[2], Secure: strings.EqualFold(fields[3], "TRUE"), HttpOnly: isHTTPOnly}
		if strings.EqualFold(fields[1], "TRUE") && net.ParseIP(host) == nil {
			c.Domain = host
		}
		if expires > 0 {
			c.Expires = time.Unix(expires, 0)
		}
		if err := c.Valid(); err != nil {
			return fmt.Errorf("line %d holds no valid cookie", number)
		}
		j.SetCookies(&url.URL{Scheme: "https", Host: host, Path: "/"}, []*http.Cookie{c})
	}
	return nil
}

// Text returns a cookies.txt of all cookies in a fixed order.
func (j *Jar) Text() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := []string{}
	for at, c := range j.kept {
		if strings.ContainsAny(at.path, "\t\r\n") {
			continue // This cookie would make additional fields.
		}
		isWide, expires := strings.HasPrefix(at.domain, "."), int64(0)
		if !c.Expires.IsZero() {
			if expires = c.Expires.Unix(); c.Expires.Before(time.Now()) {
				continue
			}
		}
		prefix := ""
		if c.HttpOnly {
			prefix = httpOnly
		}
		lines = append(lines, fmt.Sprintf("%s%s\t%s\t%s\t%s\t%d\t%s\t%s\n", prefix, at.domain, truth(isWide), at.path, truth(c.Secure), expires, c.Name, c.Value))
	}
	slices.Sort(lines)
	return []byte("# Netscape HTTP Cookie File\n" + strings.Join(lines, ""))
}

func truth(is bool) string { return map[bool]string{true: "TRUE", false: "FALSE"}[is] }
