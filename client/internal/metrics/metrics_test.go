package metrics

import (
	"bufio"
	"errors"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	if recorder.Code != 200 {
		t.Fatalf("the metrics answer %d: %s", recorder.Code, recorder.Body)
	}
	return recorder.Body.String()
}

// values parses the metrics, by series without the common labels.
func values(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(scrape(t, m)))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		series, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		found[series] = value
	}
	return found
}

var labels = Labels{Run: "r1", Scenario: "hs-s7", Algorithm: "alg3", Seed: "1"}

func series(name, link string) string {
	if link != "" {
		link = `link="` + link + `",`
	}
	return "multilink_" + name + `{algorithm="alg3",` + link + `run="r1",scenario="hs-s7",seed="1"}`
}

func check(t *testing.T, m *Metrics, name, link string, want float64) {
	t.Helper()
	found := values(t, m)
	if got, ok := found[series(name, link)]; !ok || got != want {
		t.Errorf("%s is %v (%v), want %v in %v", series(name, link), got, ok, want, found)
	}
}

func TestADownloadIsCounted(t *testing.T) {
	m := New(labels, []string{"wifi", "lte"})
	check(t, m, "received_bytes_total", "lte", 0)
	check(t, m, "download_progress_ratio", "", 0)
	d := m.Download()
	for _, e := range []rundir.Event{
		&rundir.Start{}, &rundir.Connected{Link: "wifi"}, &rundir.Size{Bytes: 1000},
		&rundir.Request{Link: "wifi", ID: 1, Length: 600}, &rundir.Request{Link: "lte", ID: 2, Length: 400},
		&rundir.Sample{Link: "wifi", Received: 300, RTT: 25e6},
	} {
		d.Record(0, e)
	}
	check(t, m, "received_bytes_total", "wifi", 300)
	check(t, m, "requests_in_flight", "wifi", 1)
	check(t, m, "rtt_seconds", "wifi", 0.025)
	check(t, m, "download_progress_ratio", "", 0.3)
	for _, e := range []rundir.Event{
		&rundir.End{Link: "wifi", ID: 1, Bytes: 600, Outcome: rundir.Complete},
		&rundir.End{Link: "lte", ID: 2, Bytes: 60, Wasted: 40, Outcome: rundir.Failed},
		&rundir.Sample{Link: "lte", Received: 100},
		&rundir.Failover{Link: "lte", To: "wifi", Bytes: 340},
		&rundir.Late{Link: "lte", Bytes: 25},
	} {
		d.Record(time.Second, e)
	}
	check(t, m, "received_bytes_total", "wifi", 600)
	check(t, m, "received_bytes_total", "lte", 125)
	check(t, m, "wasted_bytes_total", "wifi", 0)
	check(t, m, "wasted_bytes_total", "lte", 65)
	check(t, m, "failovers_total", "lte", 1)
	check(t, m, "failovers_total", "wifi", 0)
	check(t, m, "requests_in_flight", "wifi", 0)
	check(t, m, "download_progress_ratio", "", 0.66)
	d.Record(time.Second, &rundir.Done{Outcome: rundir.Failed})
	check(t, m, "download_progress_ratio", "", 0.66)
	check(t, m, "request_size_bytes_count", "wifi", 1)
	check(t, m, "request_size_bytes_sum", "lte", 400)
}

func TestProgressIsThatOfAllActiveDownloads(t *testing.T) {
	m := New(labels, []string{"wifi"})
	first, second := m.Download(), m.Download()
	for _, d := range []*Download{first, second} {
		d.Record(0, &rundir.Size{Bytes: 1000})
	}
	first.Record(0, &rundir.Sample{Link: "wifi", Received: 500})
	check(t, m, "download_progress_ratio", "", 0.25)
	first.Record(0, &rundir.Done{Outcome: rundir.Complete})
	check(t, m, "download_progress_ratio", "", 0)
	second.Record(0, &rundir.Done{Outcome: rundir.Complete})
	check(t, m, "download_progress_ratio", "", 1)
	check(t, m, "received_bytes_total", "wifi", 500)
}

func TestAResumedDownloadBeginsWithWhatIsThere(t *testing.T) {
	m := New(labels, []string{"wifi"})
	d := m.Download()
	d.Record(0, &rundir.Size{Bytes: 1000, Resumed: 600})
	check(t, m, "download_progress_ratio", "", 0.6)
	d.Record(0, &rundir.Sample{Link: "wifi", Received: 300})
	check(t, m, "download_progress_ratio", "", 0.9)
	check(t, m, "received_bytes_total", "wifi", 300)
	d.Record(0, &rundir.Sample{Link: "wifi", Received: 1000})
	check(t, m, "download_progress_ratio", "", 1)
	d.Record(0, &rundir.Done{Outcome: rundir.Failed})
	check(t, m, "download_progress_ratio", "", 1)
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	if _, err := exec.LookPath("promtool"); errors.Is(err, exec.ErrNotFound) {
		t.Skip("promtool is not installed")
	}
	m := New(labels, []string{"wifi", "lte"})
	m.Download().Record(0, &rundir.Request{Link: "wifi", Length: 1 << 20})
	command := exec.Command("promtool", "check", "metrics")
	command.Stdin = strings.NewReader(scrape(t, m))
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
