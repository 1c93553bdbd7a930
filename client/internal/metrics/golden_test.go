package metrics

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/tests/testkit"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// golden is a download with different values of all metrics.
var golden = []rundir.Event{
	&rundir.Start{Algorithm: "alg3", Links: []rundir.LinkDevice{{Link: "wifi", Device: "wlan0"}, {Link: "lte", Device: "rmnet0"}}},
	&rundir.Size{Bytes: 4_000_000, Link: "wifi", Resumed: 500_000},
	&rundir.Request{Link: "wifi", ID: 1, Offset: 500_000, Length: 65_536},
	&rundir.Request{Link: "lte", ID: 2, Offset: 565_536, Length: 1_000_000},
	&rundir.Request{Link: "lte", ID: 3, Offset: 1_565_536, Length: 2_000_000_000},
	&rundir.Sample{Link: "wifi", Received: 40_000, RTT: 12_500_000},
	&rundir.Sample{Link: "lte", Received: 400_000, RTT: 60_000_000},
	&rundir.End{Link: "wifi", ID: 1, Bytes: 65_536, Outcome: rundir.Complete},
	&rundir.Request{Link: "wifi", ID: 4, Offset: 3_565_536, Length: 300_000},
	&rundir.Sample{Link: "wifi", Received: 165_536, RTT: 14_000_000},
	&rundir.End{Link: "lte", ID: 2, Bytes: 900_000, Wasted: 1000, Outcome: rundir.Failed},
	&rundir.Failover{Link: "lte", To: "wifi", Bytes: 100_000, Reason: "slow"},
	&rundir.Late{Link: "lte", Bytes: 70_000},
}

// linklab's tests read testdata/golden: linklab computes the same metrics from the same events.
func TestGoldenMetricsOfADownload(t *testing.T) {
	path := t.TempDir()
	lines, err := rundir.Open(path, rundir.OfClient)
	testkit.OK(t, err)
	m := New(labels, []string{"wifi", "lte"})
	d := m.Download()
	for i, event := range golden {
		at := time.Duration(i) * 100 * time.Millisecond
		lines.Record(at, event)
		d.Record(at, event)
	}
	testkit.OK(t, lines.Close(rundir.Summary{}))
	events, err := os.ReadFile(filepath.Join(path, "client.jsonl"))
	testkit.OK(t, err)
	for name, got := range map[string]string{"client.jsonl": string(events), "metrics.txt": scrape(t, m)} {
		committed := filepath.Join("testdata", "golden", name)
		if *update {
			testkit.OK(t, os.WriteFile(committed, []byte(got), 0o644))
		}
		if want, err := os.ReadFile(committed); err != nil || got != string(want) {
			t.Errorf("%s is\n%swant (%v; go test ./internal/metrics -update writes it anew)\n%s", name, got, err, want)
		}
	}
}
