package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// onceServer answers the first GET of each URL, and refuses all later requests for it.
type onceServer struct {
	mu     sync.Mutex
	used   map[string]bool
	links  int
	ranges bool
	code   int
}

func (s *onceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if strings.HasPrefix(r.URL.Path, "/to/") {
		s.links++
		to := fmt.Sprintf("/file?signature=%d", s.links)
		s.mu.Unlock()
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	isUsed := s.used[r.URL.String()]
	s.used[r.URL.String()] = isUsed || r.Method == http.MethodGet
	s.mu.Unlock()
	if isUsed {
		http.Error(w, "used", s.code)
		return
	}
	if !s.ranges {
		r.Header.Del("Range")
		w.Header().Set("Content-Length", fmt.Sprint(len(small)))
		w.Header().Set("Content-Type", "application/octet-stream")
		if r.Method == http.MethodGet {
			trickle(w, small)
		}
		return
	}
	w.Header().Set("ETag", `"1"`)
	http.ServeContent(&slowWriter{w}, r, "", time.Time{}, bytes.NewReader(small))
}

// small is the file that takes half a second.
var small = file[:1_500_000]

// trickle takes half a second for it.
func trickle(w http.ResponseWriter, content []byte) {
	for len(content) > 0 {
		n := min(len(content), len(small)/50+1)
		if _, err := w.Write(content[:n]); err != nil {
			return
		}
		content = content[n:]
		time.Sleep(10 * time.Millisecond)
	}
}

type slowWriter struct{ http.ResponseWriter }

func (w *slowWriter) Write(p []byte) (int, error) {
	trickle(w.ResponseWriter, p)
	return len(p), nil
}

// A URL may work once: whatever the server serves and refuses, the answer to the first request is the file.
func TestURLsThatWorkOnce(t *testing.T) {
	t.Parallel()
	for protocol, serve := range map[string]func(*testing.T, http.Handler) (string, []string){"HTTP/2": serve, "HTTP/1.1": serveHTTP1} {
		for _, ranges := range []bool{true, false} {
			for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone} {
				server := &onceServer{used: map[string]bool{}, ranges: ranges, code: code}
				url, flags := serve(t, server)
				url = strings.TrimSuffix(url, "/dir/file.bin")
				for _, how := range [][]string{{"/file?token=a"}, {"/b/file"}, {"/c/file", "-o", "-"}, {"/to/file"}} {
					t.Run(fmt.Sprint(protocol, ranges, code, how), func(t *testing.T) {
						t.Parallel()
						name := filepath.Join(t.TempDir(), "copy")
						begun := time.Now()
						arguments := append([]string{"get", url + how[0], "-o", name, "--quiet", "--once", "--link", "wifi=lo", "--link", "lte=lo"}, append(flags, how[1:]...)...)
						exit, stdout, stderr := run(arguments...)
						got, _ := os.ReadFile(name)
						if strings.Contains(strings.Join(how, " "), "-o -") {
							got = []byte(stdout)
						}
						if exit != 0 || !bytes.Equal(got, small) {
							t.Errorf("exit code %d after %v, %d of %d bytes, stderr %s", exit, time.Since(begun), len(got), len(small), stderr)
						}
					})
				}
			}
		}
	}
}

// A URL that works once is used up by the first range. The error says what helps.
func TestAURLThatIsUsedUp(t *testing.T) {
	t.Parallel()
	url, flags := serve(t, &onceServer{used: map[string]bool{}, ranges: true, code: http.StatusForbidden})
	exit, _, stderr := run(append([]string{"get", url, "-o", filepath.Join(t.TempDir(), "copy"), "--quiet", "--link", "wifi=lo", "--link", "lte=lo"}, flags...)...)
	if exit != 1 || !strings.Contains(stderr, "if the URL works once, take a new one with --once") {
		t.Errorf("exit code %d, stderr %s", exit, stderr)
	}
}
