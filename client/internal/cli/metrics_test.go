package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// unixClient returns an HTTP client for a UNIX socket.
func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
}

// scrape reads the metrics on a UNIX socket.
func scrape(t *testing.T, path string) string {
	t.Helper()
	response, err := unixClient(path).Get("http://multilink/metrics")
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
	t.Setenv(labelsVariable, "run=from-env,seed=7")
	var once sync.Once
	var text string
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			once.Do(func() { text = scrape(t, "metrics.sock") })
		}
		content(w, r)
	}))
	code, _, stderr := run(append([]string{"get", url, "--link", "wifi=lo", "--algorithm", "single", "--metrics", "unix:metrics.sock", "--metrics-label", "run=mine"}, flags...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	want := `multilink_requests_in_flight{algorithm="single",link="wifi",run="mine",scenario="",seed="7"} 1`
	testkit.Holds(t, strings.Contains(text, want), text, want)
	testkit.Holds(t, !strings.Contains(text, "127.0.0.1"), text)
	if entries, _ := filepath.Glob("*.sock*"); len(entries) > 0 {
		t.Errorf("%v is left", entries)
	}
}

func TestMetricsThatCanNotBeServed(t *testing.T) {
	t.Chdir(t.TempDir())
	written(t, "taken", nil)
	get := []string{"get", "https://h/f", "--link", "lo"}
	expectFailure(t, 1, "metrics: taken exists and is no socket", append(get, "--metrics", "unix:taken")...)
	expectFailure(t, 1, "metrics: listen tcp 1.2.3.4:99: ", append(get, "--metrics", "1.2.3.4:99")...)
	expectFailure(t, 2, "--metrics nowhere: allowed is HOST:PORT or unix:PATH", append(get, "--metrics", "nowhere")...)
	expectFailure(t, 2, "--metrics-label url=x: allowed is NAME=VALUE with NAME run, scenario or seed", append(get, "--metrics-label", "url=x")...)
}
