package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/tests/testkit"
)

// uploads keeps the bodies of PUT requests, also of parts.
type uploads struct {
	mu     sync.Mutex
	got    []byte
	ranged bool
	asked  map[string]int
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked[r.Method]++
	switch r.Method {
	case http.MethodPut:
		var first, last, size int
		if n, _ := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); n == 3 {
			u.ranged = true
		} else {
			size = len(body)
		}
		if len(u.got) != size {
			u.got = make([]byte, size)
		}
		copy(u.got[first:], body)
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// A server without known support gets no ranges.
func TestPut(t *testing.T) {
	for _, ranged := range []bool{true, false} {
		server := &uploads{asked: map[string]int{}}
		url, flags := serve(t, server)
		directory := t.TempDir()
		name := written(t, filepath.Join(directory, "film"), file)
		arguments := append([]string{"put", name, url, "--link", "wifi=lo", "--link", "lte=lo", "--run-dir", directory, "--json"}, flags...)
		code, stdout, stderr := run(append(arguments, fmt.Sprintf("--ranged=%v", ranged))...)
		server.mu.Lock() // The server may still receive a duplicate.
		whole, isRanged, asked := bytes.Equal(server.got, file), server.ranged, maps.Clone(server.asked)
		server.mu.Unlock()
		if code != 0 || stderr != "" || !whole || isRanged != ranged {
			t.Fatalf("exit code %d, stderr %q, the server has the file: %v, ranges: %v", code, stderr, whole, isRanged)
		}
		testkit.Same(t, len(asked), 1, ranged)
		if summary := summaryOf(t, stdout); summary.SHA256 == "" || summary.Algorithm != defaultAlgorithm {
			t.Errorf("%+v", summary)
		}
		events, err := os.ReadFile(filepath.Join(directory, "client.jsonl"))
		for _, kind := range []string{`"event":"start"`, `"event":"request"`, `"event":"end"`, `"event":"done"`} {
			testkit.Holds(t, err == nil && bytes.Contains(events, []byte(kind)), kind, err)
		}
	}
}

// A file that changes during the upload is an error, even if its size stays the same.
func TestPutOfAFileThatChanges(t *testing.T) {
	name := written(t, filepath.Join(t.TempDir(), "film"), file)
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			f.WriteAt([]byte("other"), 0)
			f.Close()
		}
		w.WriteHeader(http.StatusCreated)
	}))
	directory := t.TempDir()
	code, stdout, stderr := run(append([]string{"put", name, url, "--link", "lo", "--json", "--run-dir", directory}, flags...)...)
	summary := summaryOf(t, stdout)
	const want = "the file changed while it was sent"
	if code != 1 || !strings.Contains(stderr, want) || summary.Outcome != rundir.Failed || !strings.Contains(summary.Error, want) || summary.SHA256 != "" {
		t.Errorf("exit code %d, stderr %q, %+v", code, stderr, summary)
	}
	if events, err := os.ReadFile(filepath.Join(directory, "client.jsonl")); err != nil || !bytes.Contains(events, []byte(want)) {
		t.Errorf("client.jsonl does not say so (%v)", err)
	}
}

func TestFilesThatAreNotUploaded(t *testing.T) {
	name := written(t, filepath.Join(t.TempDir(), "film"), nil)
	expectFailure(t, 1, "allowed is a file that is not empty", "put", name, "https://host/x", "--link", "lo")
	expectFailure(t, 1, "no such file", "put", name+"x", "https://host/x", "--link", "lo")
}
