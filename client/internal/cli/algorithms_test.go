package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
)

func TestAlgorithmsAreListed(t *testing.T) {
	code, stdout, stderr := run("algorithms")
	for _, want := range []string{"single\n  everything, on one link\n", "alg1 (static-limit)\n", "  flags: --bandwidth --padding --first-request"} {
		if code != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, stderr %q, %q is not in\n%s", code, stderr, want, stdout)
		}
	}
	code, stdout, stderr = run("algorithms", "--json")
	want, err := json.Marshal(schedule.Algorithms)
	if code != 0 || stderr != "" || err != nil || stdout != string(want)+"\n" {
		t.Errorf("exit code %d, stderr %q, stdout %swant %s (%v)", code, stderr, stdout, want, err)
	}
}

// Run files record the name, even if the alias was given.
func TestAnAliasIsTheAlgorithm(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	t.Chdir(t.TempDir())
	code, stdout, stderr := run(append([]string{"get", url, "--link", "lo", "--algorithm", "static-limit", "--json"}, flags...)...)
	var summary rundir.Summary
	if err := json.Unmarshal([]byte(stdout), &summary); code != 0 || err != nil || summary.Algorithm != "alg1" {
		t.Errorf("exit code %d, stderr %q, error %v, algorithm %q", code, stderr, err, summary.Algorithm)
	}
}
