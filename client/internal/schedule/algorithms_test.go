package schedule

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

var update = flag.Bool("update", false, "write algorithms.json anew")

func TestAlgorithmsFileIsUpToDate(t *testing.T) {
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	table := struct {
		Defaults   Settings    `json:"defaults"`
		Algorithms []Algorithm `json:"algorithms"`
	}{Defaults, Algorithms}
	testkit.OK(t, encoder.Encode(table))
	if *update {
		testkit.OK(t, os.WriteFile("algorithms.json", want.Bytes(), 0o644))
	}
	if got, err := os.ReadFile("algorithms.json"); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("algorithms.json is another table (%v): go test ./internal/schedule -update writes it", err)
	}
}

func TestEveryRowIsWhole(t *testing.T) {
	names := map[string]bool{}
	for _, a := range Algorithms {
		testkit.Holds(t, a.About != "" && len(a.From) != 0 && a.Wins != "" && a.Options != nil && a.Needs != nil && a.Scheduler != nil, a)
		for _, name := range []string{a.Name, a.Alias} {
			testkit.Holds(t, name == "" || !names[name], name)
			names[name] = true
		}
	}
}

func TestNamesAndAliases(t *testing.T) {
	for name, want := range map[string]string{"single": "single", "alg1": "alg1", "static-limit": "alg1", "link-bdp": "alg3"} {
		if got, err := Find(name); err != nil || got.Name != want {
			t.Errorf("%s is %s (%v), want %s", name, got.Name, err, want)
		}
	}
	for _, name := range []string{"alg4", ""} {
		if got, err := Find(name); err == nil || !strings.HasPrefix(err.Error(), "allowed are single, naive, alg1 (static-limit), ") {
			t.Errorf("%q is %v, error %v", name, got, err)
		}
	}
}
