package cli

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/tests/oddserver"
	"github.com/linklab/linklab/client/tests/testkit"
)

// onceServer answers the first GET of each URL, and refuses all later requests for it.
type onceServer struct {
	mu     sync.Mutex
	used   map[string]bool
	links  int
	file   http.Handler
	refuse http.HandlerFunc
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
		s.refuse(w, r)
		return
	}
	s.file.ServeHTTP(w, r)
}

// refusals are what servers answer for a URL that was used.
var refusals = map[string]http.HandlerFunc{
	"page": answerLogin,
	"login": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1/login", http.StatusFound)
	},
	"reset": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"401":   refuseWith(http.StatusUnauthorized),
	"403":   refuseWith(http.StatusForbidden),
	"404":   refuseWith(http.StatusNotFound),
	"410":   refuseWith(http.StatusGone),
}

func refuseWith(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "used", code) }
}

// A URL may work once: whatever the server serves and refuses, the answer to the first request is the file.
func TestURLsThatWorkOnce(t *testing.T) {
	t.Parallel()
	kinds := slices.Sorted(maps.Keys(refusals))
	cases := uint64(24)
	if n, err := strconv.ParseUint(os.Getenv("LINKLAB_ONCE_SERVERS"), 10, 64); err == nil {
		cases = n
	}
	for seed := range cases {
		draw := rand.New(rand.NewPCG(seed, 49))
		size, habit, kind := 1+draw.IntN(2_000_000), []string{"plain", "whole"}[draw.IntN(2)], kinds[draw.IntN(len(kinds))]
		protocol := draw.IntN(2)
		path := []string{"/file?token=a", "/b/file", "/to/file"}[draw.IntN(3)]
		how := [][]string{nil, {"-o", "-"}, {"--connections", "1"}, {"--connections", "3"}}[draw.IntN(4)]
		rate := 200_000 * (1 + draw.IntN(40)) // bytes per second
		t.Run(fmt.Sprint(seed, " ", size, habit, kind, protocol, path, how, rate), func(t *testing.T) {
			t.Parallel()
			found, _ := oddserver.Find(habit)
			slowly := oddserver.New(file[:size], oddserver.WithHabit(found), oddserver.WithRate(rate))
			server := &onceServer{used: map[string]bool{}, file: slowly, refuse: refusals[kind]}
			serve := []func(*testing.T, http.Handler) (string, []string){serve, serveHTTP1}[protocol]
			url, flags := serve(t, server)
			name := filepath.Join(t.TempDir(), "copy")
			arguments := append([]string{"get", strings.TrimSuffix(url, "/dir/file.bin") + path, "-o", name, "--quiet", "--give-up", "20s", "--link", "wifi=lo", "--link", "lte=lo"}, append(flags, how...)...)
			exit, stdout, stderr := run(arguments...)
			got, _ := os.ReadFile(name)
			if slices.Contains(how, "-") {
				got = []byte(stdout)
			}
			testkit.Holds(t, exit == 0 && bytes.Equal(got, file[:size]), exit, len(got), size, stderr)
		})
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
			expectFile(t, append(flags, url, "--quiet", "--give-up", "10s", "--link", "wifi=lo", "--link", "lte=lo")...)
		})
	}
}
