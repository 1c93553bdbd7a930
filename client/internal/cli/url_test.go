package cli

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// strange serves the file under names that URLs cannot contain unencoded.
type strange struct {
	mu   sync.Mutex
	seen []string
}

func (s *strange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r.RequestURI)
	s.mu.Unlock()
	switch r.URL.Path {
	case "/moved":
		w.Header().Set("Location", "/dir/ä b.bin?name=x y&n=ü&done=%20%C3%BC+")
		w.WriteHeader(http.StatusFound)
	case "/dir/ä b.bin":
		content(w, r)
	default:
		http.NotFound(w, r)
	}
}

// A URL or redirect with spaces or letters of any script is encoded before it is sent.
func TestURLsAsPeopleWriteThem(t *testing.T) {
	const want = "/dir/%C3%A4%20b.bin?name=x%20y&n=%C3%BC&done=%20%C3%BC+"
	for name, start := range map[string]func(*testing.T, http.Handler) (string, []string){"HTTP/2": serve, "HTTP/1.1": serveHTTP1} {
		t.Run(name, func(t *testing.T) {
			server := &strange{}
			url, flags := start(t, server)
			root := strings.TrimSuffix(url, "/dir/file.bin")
			proxy := startProxy(t, append(flags, "--link", "wifi=lo", "--link", "lte=lo")...)
			for _, path := range []string{"/moved", "/dir/ä b.bin?name=x y&n=ü&done=%20%C3%BC+", want} {
				expectFile(t, append(flags, root+path, "--link", "wifi=lo", "--link", "lte=lo", "--give-up", "1m")...)
				response, err := http.Get("http://" + proxy + "/" + strings.ReplaceAll(root+path, " ", "%20"))
				testkit.OK(t, err)
				got, _ := io.ReadAll(response.Body)
				response.Body.Close()
				testkit.SameList(t, got, file, path, response.Status)
			}
			http.DefaultClient.CloseIdleConnections()
			server.mu.Lock() // The proxy may ask once more.
			defer server.mu.Unlock()
			for _, uri := range server.seen {
				testkit.Holds(t, uri == "/moved" || uri == want || uri == strings.Replace(want, "&n=%C3%BC", "&n=ü", 1), uri)
			}
		})
	}
}

// The name of the file is the decoded end of the URL.
func TestTheNameOfAStrangeURL(t *testing.T) {
	url, flags := serve(t, &strange{})
	t.Chdir(t.TempDir())
	code, _, stderr := run(append([]string{"get", strings.Replace(url, "file", "ä b", 1), "--link", "lo"}, flags...)...)
	if names, err := filepath.Glob("*"); code != 0 || err != nil || !slices.Equal(names, []string{"ä b.bin"}) {
		t.Errorf("exit code %d, files %q, stderr %q", code, names, stderr)
	}
}

func TestInternationalNames(t *testing.T) {
	own := ownFile(t)
	for url, want := range map[string]string{
		"https://münchen.test/f":   "lookup xn--mnchen-3ya.test on ",
		"https://mün..chen.test/f": `the host name "mün..chen.test" is no internationalized domain name`,
	} {
		for _, command := range [][]string{{"get", url, "-o", own + ".copy"}, {"put", own, url}, {"probe", "--server", url, "--run-dir", own + ".probe"}} {
			code, _, stderr := run(append(command, "--link", "lo", "--dns", "127.0.0.1:1", "--give-up", "1s", "--log-level", "error")...)
			if code == 0 || !strings.Contains(stderr, want) || strings.Count(strings.TrimSuffix(stderr, "Try 'multilink --help'.\n"), "\n") != 1 {
				t.Errorf("%s %q: exit code %d, stderr %q, want %q", command[0], url, code, stderr, want)
			}
		}
	}
}
