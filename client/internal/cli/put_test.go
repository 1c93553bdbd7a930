package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/internal/rundir"
)

func TestPut(t *testing.T) {
	var mu sync.Mutex
	got := make([]byte, len(file))
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "-")
		offset := 0
		for _, digit := range first {
			offset = 10*offset + int(digit-'0')
		}
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		copy(got[offset:], body)
		w.WriteHeader(http.StatusCreated)
	}))
	directory := t.TempDir()
	name := filepath.Join(directory, "film")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := append([]string{"put", name, url, "--link", "wifi=lo", "--link", "lte=lo", "--run-dir", directory, "--json"}, flags...)
	code, stdout, stderr := run(arguments...)
	mu.Lock() // the server may still take what was sent twice
	whole := bytes.Equal(got, file)
	mu.Unlock()
	if code != 0 || stderr != "" || !whole {
		t.Fatalf("exit code %d, stderr %q, the server has the file: %v", code, stderr, whole)
	}
	var summary rundir.Summary
	if err := json.Unmarshal([]byte(stdout), &summary); err != nil || summary.SHA256 == "" || summary.Algorithm != "adaptive" && summary.Algorithm != "alg3" {
		t.Errorf("%v, %+v", err, summary)
	}
	events, err := os.ReadFile(filepath.Join(directory, "client.jsonl"))
	for _, kind := range []string{`"event":"start"`, `"event":"request"`, `"event":"end"`, `"event":"done"`} {
		if err != nil || !bytes.Contains(events, []byte(kind)) {
			t.Errorf("client.jsonl has no %s (%v)", kind, err)
		}
	}
}

// Whose size stays the same, too: nobody may take what the server has for the file.
func TestPutOfAFileThatChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "film")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
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
	var summary rundir.Summary
	if err := json.Unmarshal([]byte(stdout), &summary); err != nil {
		t.Fatal(err)
	}
	const want = "the file changed while it was sent"
	if code != 1 || !strings.Contains(stderr, want) || summary.Outcome != rundir.Failed || !strings.Contains(summary.Error, want) || summary.SHA256 != "" {
		t.Errorf("exit code %d, stderr %q, %+v", code, stderr, summary)
	}
	if events, err := os.ReadFile(filepath.Join(directory, "client.jsonl")); err != nil || !bytes.Contains(events, []byte(want)) {
		t.Errorf("client.jsonl does not say so (%v)", err)
	}
}

func TestPutIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "film")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, arguments := range map[string][]string{
		"takes 2 arguments (FILE URL)":         {name},
		"is not a URL to upload to":            {name, "http://host/x"},
		"without credentials":                  {name, "https://a:b@host/x"},
		"at least one --link is needed":        {name, "https://host/x"},
		"allowed is a file that is not empt":   {name, "https://host/x", "--link", "lo"},
		"--algorithm gb-p: it plans downloads": {name, "https://host/x", "--link", "lo", "--algorithm", "gb-p"},
		"no such file":                         {name + "x", "https://host/x", "--link", "lo"},
	} {
		code, _, stderr := run(append([]string{"put"}, arguments...)...)
		if code == 0 || strings.Count(stderr, "multilink: ") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, stderr %q", arguments, code, stderr)
		}
		if strings.Contains(stderr, "a:b") {
			t.Errorf("credentials are shown: %q", stderr)
		}
	}
}
