package cli

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// freeAddress returns an address at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.OK(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// scrape reads the metrics at an address.
func scrape(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Holds(t, err == nil && response.StatusCode == http.StatusOK, response.Status, err)
	return string(text)
}

func TestGetServesMetrics(t *testing.T) {
	t.Chdir(t.TempDir())
	address := freeAddress(t)
	var once sync.Once
	var text string
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			once.Do(func() { text = scrape(t, address) })
		}
		content(w, r)
	}))
	code, _, stderr := run(append([]string{"get", url, "--link", "wifi=lo", "--algorithm", "single", "--metrics", address, "--metrics-label", "run=mine", "--metrics-label", "seed=7"}, flags...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	want := `multilink_requests_in_flight{algorithm="single",link="wifi",run="mine",scenario="",seed="7"} 1`
	testkit.Holds(t, strings.Contains(text, want), text, want)
	testkit.Holds(t, !strings.Contains(text, "127.0.0.1"), text)
}

func TestMetricsThatCanNotBeServed(t *testing.T) {
	get := []string{"get", "https://h/f", "--link", "lo"}
	expectFailure(t, 1, "metrics: listen tcp 1.2.3.4:99: ", append(get, "--metrics", "1.2.3.4:99")...)
	expectFailure(t, 2, "--metrics nowhere: allowed is HOST:PORT", append(get, "--metrics", "nowhere")...)
	expectFailure(t, 2, "--metrics-label url=x: allowed is NAME=VALUE with NAME run, scenario or seed", append(get, "--metrics-label", "url=x")...)
}
