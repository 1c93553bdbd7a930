package download

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

const login = "<!doctype html><title>Log in</title>"

// portals are captive portals, by what they answer. ownCertificate cannot prove by TLS that it is the server.
const ownCertificate = "a certificate of its own"

var portals = map[string]http.HandlerFunc{
	ownCertificate: content,
	"page": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, login)
	},
	"page from a disk": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"login"`)
		http.ServeContent(w, r, "login.html", time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), strings.NewReader(login))
	},
	"511": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNetworkAuthenticationRequired)
		fmt.Fprint(w, login)
	},
	"redirect": func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "portal.example" {
			http.Redirect(w, r, "https://portal.example/login", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, login)
	},
}

// partLength is how much of the file an earlier call left.
const partLength = 3_000_000

// behind downloads from a URL that names a file, over links that the handler can tell apart. If there is an ETag, an
// earlier call left a part of a file with that. The download fails if that is another ETag than content's.
func behind(t *testing.T, handler http.HandlerFunc, etag string, change func(*Options, *network)) (rundir.Summary, *log) {
	t.Helper()
	want := ""
	if etag != "" && etag != theETag {
		want = "file.part holds 3000000 bytes of another file"
	}
	return rescued(t, schedulers["adaptive"], handler, want, func(o *Options, n *network) {
		o.URL.Path = "/dir/file.bin"
		if etag != "" {
			o.Output = withPart(t, o, etag)
		}
		if change != nil {
			change(o, n)
		}
	})
}

// onLink is a server that answers a link's requests by there, and those of others with the content.
func onLink(name string, there http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.RemoteAddr, name) {
			there(w, r)
			return
		}
		content(w, r)
	}
}

// withPart is the sink of a call that finds what an earlier one left.
func withPart(t *testing.T, o *Options, etag string) func() (Sink, error) {
	t.Helper()
	empty, err := o.Output()
	testkit.OK(t, err)
	part := partfile.Options{Name: filepath.Clean(empty.(*partfile.File).Name), Resume: true, URL: o.URL.String()}
	testkit.OK(t, empty.Abort(false))
	if etag != theETag {
		part.Name = filepath.Join(t.TempDir(), "file") // It stays, and nothing else is left.
	}
	f, err := partfile.Create(part)
	testkit.OK(t, err)
	resource := transport.Resource{Size: quantity.Bytes(len(file)), ETag: etag, LastModified: "Fri, 31 Dec 1999 00:00:00 GMT"}
	_, err = f.Begin(resource, ranges.Range{})
	testkit.OK(t, err)
	_, err = f.WriteAt(file[:partLength], 0)
	testkit.OK(t, err)
	testkit.OK(t, f.Abort(false))
	return func() (Sink, error) { return partfile.Create(part) }
}

// theETag is what content says.
const theETag = `"6b010793-5b8d80"`

// A link behind a captive portal is left for later, whichever answers first and however, and the other one brings the
// file; also the rest of one of which an earlier call left a part.
func TestAPortalOnOneLink(t *testing.T) {
	own, _ := testkit.Certificate("portal.example")
	for name, answer := range portals {
		for _, portal := range []string{"wifi", "lte"} {
			for _, etag := range []string{"", theETag} {
				for _, algorithm := range []string{"adaptive", "alg3"} {
					t.Run(fmt.Sprintf("%s on %s, part %v, %s", name, portal, etag != "", algorithm), func(t *testing.T) {
						t.Parallel()
						summary, _ := behind(t, onLink(portal, answer), etag, func(o *Options, n *network) {
							o.Scheduler = schedulers[algorithm]
							n.server.TLSConfig.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
								if name == ownCertificate && strings.HasPrefix(hello.Conn.RemoteAddr().String(), portal) {
									return &own, nil
								}
								return &certificate, nil
							}
						})
						testkit.Same(t, summary.Resumed, quantity.Bytes(len(etag)/len(theETag))*partLength, "resumed bytes")
						testkit.Same(t, summary.Links[portal].Bytes, 0, summary.Links)
						// A link alone needs 0.6 or 1.2 s for all.
						within(t, "download time", seconds(summary.Download), 0.3, 1.8)
					})
				}
			}
		}
	}
}

// A link goes on after somebody has logged in, and one that is asked to log in meanwhile is not lost for good.
func TestAPortalThatComesAndGoes(t *testing.T) {
	for name, answer := range portals {
		if name == "page from a disk" || name == ownCertificate {
			continue // Ranges of another file, or no portal once connected: that link is not used any more.
		}
		t.Run(name, func(t *testing.T) {
			start := time.Time{}
			handler := func(w http.ResponseWriter, r *http.Request) {
				if start.IsZero() {
					start = time.Now()
				}
				since := time.Since(start)
				if strings.HasPrefix(r.RemoteAddr, "wifi") && since > 100*time.Millisecond && since < 600*time.Millisecond {
					answer(w, r)
					return
				}
				slowly(w, r)
			}
			summary, events := behind(t, handler, "", nil)
			late := false
			for i, e := range events.events {
				end, ok := e.(*rundir.End)
				late = late || ok && end.Link == "wifi" && end.Bytes > 0 && end.Outcome == rundir.Complete && events.times[i] > 2*time.Second
			}
			testkit.Holds(t, late, "wifi brought nothing after the portal", summary.Links)
		})
	}
}

// The part of a file that has changed on the server is refused once all links say so, and twice.
func TestTheFileChangedOnAllLinks(t *testing.T) {
	for _, links := range []int{1, 2} {
		for _, algorithm := range []string{"adaptive", "alg3"} {
			t.Run(fmt.Sprintf("%d, %s", links, algorithm), func(t *testing.T) {
				var mu sync.Mutex
				var asked [2]int
				begun := false
				handler := func(w http.ResponseWriter, r *http.Request) {
					i := strings.Index("wl", r.RemoteAddr[:1])
					mu.Lock()
					begun = begun || r.Method == http.MethodGet && r.Header.Get("Range") != "bytes=0-0"
					if !begun {
						asked[i]++
					}
					mu.Unlock()
					content(w, r)
				}
				summary, _ := behind(t, handler, `"before"`, func(o *Options, _ *network) {
					o.Links, o.Scheduler = o.Links[:links], schedulers[algorithm]
				})
				testkit.Holds(t, asked[0]+asked[1] >= 2 && (links != 2 || asked[0] != 0 && asked[1] != 0) && summary.Resumed == 0, "questions to each link before, and resumed bytes", asked, summary.Resumed)
				within(t, "time until the refusal", seconds(summary.Download), 0.05, 0.5)
			})
		}
	}
}

// A link that cannot answer does not keep the others from it for long.
func TestTheFileChangedAndALinkIsDead(t *testing.T) {
	summary, _ := behind(t, content, `"before"`, func(_ *Options, n *network) { n.lte.set(0) })
	within(t, "time until the refusal", seconds(summary.Download), 0.6, 12+longestDoubt.Seconds())
}

// A web page under the name of a file is taken where TLS proves who says so, as by a server that knows no types.
func TestAFileThatIsCalledAPage(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"ranges": content, "no ranges": noRanges} {
		t.Run(name, func(t *testing.T) {
			handler := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				answer(w, r)
			}
			summary, _ := behind(t, handler, "", nil)
			within(t, "download time", seconds(summary.Download), 0.4, 2)
		})
	}
}
