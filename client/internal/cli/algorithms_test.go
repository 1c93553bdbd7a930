package cli

import (
	"encoding/json"
	"strings"
	"testing"

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
