package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http/httpproxy"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/quantity"
)

// requestFlags describe requests, as the user wrote them. Their names are curl's.
type requestFlags struct {
	headers   []string
	userAgent string
	redirects int
}

func (f *requestFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "send this field, as NAME: VALUE, or those of a file, as @FILE (repeatable; to another origin go Accept, Accept-Language, Referer and User-Agent alone)")
	flags.StringVarP(&f.userAgent, "user-agent", "A", "", "send this as User-Agent")
}

// registerRedirects adds the flags of commands that follow redirects.
func (f *requestFlags) registerRedirects(flags *pflag.FlagSet) {
	flags.IntVar(&f.redirects, "max-redirs", 10, "most redirects in a row")
}

// mostSecrets limits the size of a file of fields, in bytes.
const mostSecrets = 4 << 20

// request is what every request carries.
type request struct {
	header http.Header
	// private are the names of fields that only the first origin gets.
	private   []string
	redirects int
}

// ours are the fields that multilink sets itself.
var ours = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Content-Range", "Expect", "If-Match", "If-Modified-Since",
	"If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// secrets are fields that hold credentials.
var secrets = []string{"Authorization", "Cookie", "Proxy-Authorization"}

// harmless are fields that may be sent to every origin.
var harmless = []string{"Accept", "Accept-Language", "Referer", "User-Agent"}

// read checks the flags. It overwrites secrets in the arguments of the process.
func (f *requestFlags) read() (*request, error) {
	r := &request{header: http.Header{}, redirects: cmp.Or(f.redirects, download.NoRedirects)}
	if f.redirects < 0 {
		return nil, invalid("max-redirs", f.redirects, "allowed are numbers from 0")
	}
	for _, text := range f.headers {
		if err := r.addFields(text); err != nil {
			return nil, err
		}
		if _, value, ok := strings.Cut(text, ":"); ok {
			credentials.HideValue(value)
		}
	}
	if f.userAgent != "" {
		if !httpguts.ValidHeaderFieldValue(f.userAgent) {
			return nil, invalid("user-agent", "", "it holds a line break or another control character")
		}
		r.header.Set("User-Agent", f.userAgent)
	}
	return r, nil
}

// addFields parses NAME: VALUE, or a file of such lines.
func (r *request) addFields(text string) error {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return r.addField(text, "")
	}
	lines, err := plainfile.ReadSecret(name, mostSecrets)
	if err != nil {
		return invalid("header", "", "%w", err)
	}
	number := 0
	for line := range strings.Lines(string(lines)) {
		number++
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) == "" {
			continue
		}
		if err := r.addField(line, fmt.Sprintf("%s, line %d: ", name, number)); err != nil {
			return err
		}
	}
	return nil
}

// addField parses NAME: VALUE. No error shows the value.
func (r *request) addField(text, where string) error {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		name, ok = strings.CutSuffix(text, ";") // An empty field, as in curl.
	}
	value = strings.Trim(value, " \t")
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !ok || !httpguts.ValidHeaderFieldName(name):
		return invalid("header", "", "%sallowed is NAME: VALUE, with a name of letters, digits and -", where)
	case !httpguts.ValidHeaderFieldValue(value):
		return invalid("header", "", "%s%s holds a line break or another control character", where, canonical)
	case canonical == "Range":
		return invalid("header", "", "%sRange is what --range is for", where)
	case slices.Contains(ours, canonical):
		return invalid("header", "", "%s%s is set by multilink itself", where, canonical)
	case canonical == "Host" && !httpguts.ValidHostHeader(value):
		return invalid("header", "", "%sHost is no host name", where)
	}
	r.header.Add(canonical, strings.Clone(value))
	if !slices.Contains(harmless, canonical) {
		r.private = append(r.private, canonical)
	}
	return nil
}

// to returns the header for a URL. authorization comes from the URL, or is empty.
func (r *request) to(u *url.URL, authorization string) (http.Header, error) {
	header := r.header.Clone()
	if authorization != "" {
		if header.Get("Authorization") != "" {
			return nil, errors.New("credentials in the URL and --header Authorization exclude each other")
		}
		header.Set("Authorization", authorization)
	}
	if u.Scheme != "https" && slices.ContainsFunc(secrets, func(name string) bool { return header.Get(name) != "" }) {
		return nil, errors.New("the request holds credentials, which over plain HTTP anybody on the way could read: allowed is https")
	}
	if len(header) == 0 {
		header = nil
	}
	return header, nil
}

// into adds the request to the options of a download.
func (r *request) into(o *download.Options, u *url.URL, authorization string) (err error) {
	o.Private, o.Redirects = r.private, r.redirects
	o.Header, err = r.to(u, authorization)
	return err
}

// ignoredProxy returns the proxy in the environment for the URL, "" if none.
func ignoredProxy(u *url.URL) string {
	by, err := httpproxy.FromEnvironment().ProxyFunc()(u)
	if by == nil && err == nil {
		return ""
	}
	return u.Scheme + "_proxy is not used: every link connects to the server itself"
}

// parseSlice parses FIRST-LAST, FIRST- or -LENGTH.
func parseSlice(text string) (*download.Slice, error) {
	if text == "" {
		return nil, nil
	}
	wrong := invalid("range", text, "allowed are one FIRST-LAST, FIRST- or -LENGTH, in bytes from 0")
	from, to, ok := strings.Cut(text, "-")
	if !ok || from == "" && to == "" {
		return nil, wrong
	}
	first, last := uint64(0), uint64(0)
	var err, lastErr error
	if from != "" {
		first, err = strconv.ParseUint(from, 10, 62)
	}
	if to != "" {
		last, lastErr = strconv.ParseUint(to, 10, 62)
	}
	s := &download.Slice{First: quantity.Bytes(first), Last: quantity.Bytes(last)}
	switch {
	case err != nil || lastErr != nil || from == "" && last == 0 || from != "" && to != "" && last < first:
		return nil, wrong
	case from == "":
		s.First, s.Last = -s.Last, -1
	case to == "":
		s.Last = -1
	}
	return s, nil
}
