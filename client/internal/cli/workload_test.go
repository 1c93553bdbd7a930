package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestWorkloads(t *testing.T) {
	t.Parallel()
	url, flags := serve(t, http.HandlerFunc(content))
	for _, kind := range [][]string{
		{"player", "--rate", "400Mbit/s", "--segment", "1MB"},
		{"page", "--objects", "400000,1200000,400000"},
		{"rounds", "--answer", "2MB"},
		{"paced", "--rate", "400Mbit/s", "--every", "20ms"},
	} {
		for _, way := range [][]string{
			{"--device", "lo"},
			append([]string{"--", "proxy", "--link", "wifi=lo", "--link", "lte=lo"}, flags...),
		} {
			arguments := append([]string{"workload", kind[0], url, "--size", "2000000", "--checksum", checksum, "--json"}, flags...)
			arguments = append(append(arguments, kind[1:]...), way...)
			out, err := asProcess(t, arguments...).Output()
			var result rundir.Workload
			if err != nil || json.Unmarshal(out, &result) != nil || result.Bytes != 2_000_000 || len(result.Figures) == 0 || result.Version == "" {
				t.Errorf("%v: %v, %s", arguments, err, out)
			}
		}
	}
}

func TestAWorkloadThatFailsSaysSoOnceAndEndsItsProxy(t *testing.T) {
	t.Parallel()
	url, flags := serve(t, http.NotFoundHandler())
	directory := t.TempDir()
	arguments := append([]string{"workload", "paced", url, "--size", "5MB", "--rate", "8Mbit/s", "--run-dir", directory, "--"}, "proxy", "--link", "lo")
	command := asProcess(t, append(arguments, flags...)...)
	out, err := command.CombinedOutput()
	testkit.Holds(t, err != nil && strings.Count(string(out), "\n") == 1 && strings.Contains(string(out), "404"), err, out)
	text, err := os.ReadFile(filepath.Join(directory, "workload.json"))
	var result rundir.Workload
	testkit.Holds(t, err == nil && json.Unmarshal(text, &result) == nil && result.Outcome == rundir.Failed && result.Error != "", err, text)
}
