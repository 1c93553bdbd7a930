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

	"github.com/linklab/linklab/client/internal/oddserver"
)

// onceServer answers the first GET of each URL, and refuses all later requests for it.
type onceServer struct {
	mu    sync.Mutex
	used  map[string]bool
	links int
	file  http.Handler
	code  int
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
	s.file.ServeHTTP(w, r)
}

// small is the file, which takes half a second.
var small = file[:1_500_000]

// newOnceServer returns a server with or without ranges that refuses with a code.
func newOnceServer(ranges bool, code int) *onceServer {
	name := "whole"
	if ranges {
		name = "plain"
	}
	habit, _ := oddserver.Find(name)
	slowly := oddserver.New(small, oddserver.WithHabit(habit), oddserver.WithRate(3_000_000))
	return &onceServer{used: map[string]bool{}, file: slowly, code: code}
}

// A URL may work once: whatever the server serves and refuses, the answer to the first request is the file.
func TestURLsThatWorkOnce(t *testing.T) {
	t.Parallel()
	for protocol, serve := range map[string]func(*testing.T, http.Handler) (string, []string){"HTTP/2": serve, "HTTP/1.1": serveHTTP1} {
		for _, ranges := range []bool{true, false} {
			for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone} {
				server := newOnceServer(ranges, code)
				url, flags := serve(t, server)
				url = strings.TrimSuffix(url, "/dir/file.bin")
				for _, how := range [][]string{{"/file?token=a"}, {"/b/file"}, {"/c/file", "-o", "-"}, {"/to/file"}} {
					t.Run(fmt.Sprint(protocol, ranges, code, how), func(t *testing.T) {
						t.Parallel()
						name := filepath.Join(t.TempDir(), "copy")
						begun := time.Now()
						arguments := append([]string{"get", url + how[0], "-o", name, "--quiet", "--link", "wifi=lo", "--link", "lte=lo"}, append(flags, how[1:]...)...)
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

// A server may serve one request after the other: the first answer, which waits for a second one, goes on.
func TestAServerThatServesOneRequestAtATime(t *testing.T) {
	t.Parallel()
	for protocol, serve := range map[string]func(*testing.T, http.Handler) (string, []string){"HTTP/2": serve, "HTTP/1.1": serveHTTP1} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				content(w, r)
			}))
			name := filepath.Join(t.TempDir(), "copy")
			exit, _, stderr := run(append([]string{"get", url, "-o", name, "--quiet", "--give-up", "10s", "--link", "wifi=lo", "--link", "lte=lo"}, flags...)...)
			if got, _ := os.ReadFile(name); exit != 0 || !bytes.Equal(got, file) {
				t.Errorf("exit code %d, %d of %d bytes, stderr %s", exit, len(got), len(file), stderr)
			}
		})
	}
}
