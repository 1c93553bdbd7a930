package schedule

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
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
	allowed := "allowed are " + List(Algorithms)
	for name, want := range map[string]string{
		"alg4":        "did you mean alg1 or alg2 or alg3? " + allowed,
		"naiv":        "did you mean naive? " + allowed,
		"sttic-limit": "did you mean static-limit? " + allowed,
		"other":       allowed,
		"":            allowed,
	} {
		if got, err := Find(name); err == nil || err.Error() != want {
			t.Errorf("%q is %v, error %v, want %s", name, got, err, want)
		}
	}
}
