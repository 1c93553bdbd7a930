package cli

import (
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Commands limit their connections to a failing server. Package storm tests all failures; this test
// uses links as commands make them.
func TestCommandsDoNotStormAServerThatFails(t *testing.T) {
	var requests atomic.Int32
	url, flags := serveHTTP1(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		panic(http.ErrAbortHandler) // This closes the connection without an answer.
	}))
	begun := time.Now()
	words := append([]string{"get", url, "-o", filepath.Join(t.TempDir(), "file"), "--quiet", "--give-up", "4s", "--link", "a=lo", "--link", "b=lo"}, flags...)
	code, _, stderr := run(words...)
	if n := requests.Load(); code != 1 || n > 32 || n == 0 {
		t.Errorf("exit code %d, %d connections in %v: %s", code, n, time.Since(begun), stderr)
	}
}
