package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/tests/testkit"
)

func summaryIn(t *testing.T, directory string) rundir.Summary {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, "client.json"))
	testkit.OK(t, err)
	return summaryOf(t, string(text))
}

func TestProbeMeasuresEachLinkAndAll(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	dir := filepath.Join(t.TempDir(), "drive")
	code, stdout, stderr := run(append(flags, "probe", "--link", "wifi=lo", "--link", "lte=lo", "--server", url, "--run-dir", dir)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for i, begin := range []string{"wifi, ", "lte, ", "all, ", "a scenario of this: linklab import " + dir + "/* --scenario"} {
		testkit.Holds(t, len(lines) == 4 && strings.HasPrefix(lines[i], begin), begin, stdout)
	}
	for name, links := range map[string]int{"wifi": 1, "lte": 1, "all": 2} {
		s := summaryIn(t, filepath.Join(dir, name))
		algorithm := map[int]string{1: "single", 2: "alg3"}[links]
		testkit.Holds(t, s.Outcome == rundir.Complete && s.Algorithm == algorithm && len(s.Links) == links && int(s.Size) == len(file), name, s)
	}
	if found, _ := filepath.Glob("*.bin*"); found != nil {
		t.Errorf("the probe left %v", found)
	}
}

// A single link is measured over one connection, whatever algorithm measures all links together.
func TestProbeMeasuresAloneByOneConnection(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	dir := t.TempDir()
	code, _, stderr := run(append(flags, "probe", "--algorithm", "adaptive", "--link", "wifi=lo", "--server", url, "--run-dir", dir)...)
	events, err := os.ReadFile(filepath.Join(dir, "wifi", "client.jsonl"))
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, stderr %q, %v", code, stderr, err)
	}
	if n := strings.Count(string(events), `"event":"connected"`); n != 1 || strings.Contains(string(events), `"connections"`) {
		t.Errorf("%d connections in\n%s", n, events)
	}
}

// A probe that ends before its file reports what it measured.
func TestProbeEndsInTime(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { content(slowWriter{w, 4 * time.Millisecond}, r) }))
	dir := t.TempDir()
	code, stdout, stderr := run(append(flags, "probe", "--link", "wifi=lo", "--time", "1s", "--server", url, "--run-dir", dir)...)
	if code != 0 || stderr != "" || strings.Contains(stdout, "all, ") {
		t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	s := summaryIn(t, filepath.Join(dir, "wifi"))
	if s.Outcome != rundir.Interrupted || s.Error != errProbed.Error() || s.Links["wifi"].Bytes == 0 || int(s.Links["wifi"].Bytes) == len(file) {
		t.Errorf("%+v", s)
	}
}

func TestProbeOfAServerThatRefuses(t *testing.T) {
	url, flags := serve(t, http.NotFoundHandler())
	expectFailure(t, 1, "wifi: ", append(flags, "probe", "--link", "wifi=lo", "--server", url, "--run-dir", t.TempDir())...)
}
