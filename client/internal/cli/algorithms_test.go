package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestAlgorithmsAreListed(t *testing.T) {
	code, stdout, stderr := run("algorithms")
	for _, want := range []string{"single\n  everything, on one link\n", "alg1 (static-limit)\n", "  flags: --bandwidth --padding --first-request"} {
		testkit.Holds(t, code == 0 && stderr == "" && strings.Contains(stdout, want), code, stderr, want, stdout)
	}
	code, stdout, stderr = run("algorithms", "--json")
	want, err := json.Marshal(schedule.Algorithms)
	testkit.Holds(t, code == 0 && stderr == "" && err == nil && stdout == string(want)+"\n", code, stderr, stdout, want, err)
}
