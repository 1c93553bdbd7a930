package cli

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// startProxy runs "multilink proxy" until the end of the test. It returns the address.
func startProxy(t *testing.T, flags ...string) (address string) {
	t.Helper()
	var stdout, stderr testkit.Text
	var code int
	done := make(chan struct{})
	go func() {
		defer close(done)
		code = Main(append([]string{"proxy", "--listen", "127.0.0.1:0"}, flags...), &stdout, &stderr)
	}()
	for range 1000 {
		if _, text, ok := strings.Cut(stdout.String(), "multilink proxy on http://"); ok && strings.HasSuffix(text, "\n") {
			t.Cleanup(func() {
				syscall.Kill(os.Getpid(), syscall.SIGTERM)
				<-done
				testkit.Same(t, code, 0, stderr.String())
			})
			return strings.TrimSpace(text)
		}
		select {
		case <-done:
			t.Fatalf("exit code %d, stderr %q", code, stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("the proxy does not start")
	return ""
}

// program runs an installed program and returns its standard output.
func program(t *testing.T, words ...string) []byte {
	t.Helper()
	command := exec.Command(words[0], words[1:]...)
	command.Env = append(os.Environ(), "no_proxy=", "NO_PROXY=")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(words[0] + " is not installed")
	}
	testkit.Holds(t, err == nil, strings.Join(words, " "), err, stderr.Bytes())
	return out
}

func TestProgramsUseTheProxy(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	t.Chdir(t.TempDir())
	metrics := freeAddress(t)
	proxy := startProxy(t, append(flags, "--link", "wifi=lo", "--link", "lte=lo", "--metrics", metrics, "--buffer", "2MiB")...)
	gateway := "http://" + proxy + "/" + url

	for name, words := range map[string][]string{
		"curl":           {"curl", "-sSf", gateway},
		"wget":           {"wget", "-q", "-O", "-", gateway},
		"curl's CONNECT": {"curl", "-sSf", "--proxy", "http://" + proxy, "--cacert", flags[1], url},
		"wget's CONNECT": {"wget", "-q", "-O", "-", "-e", "https_proxy=http://" + proxy, "--ca-certificate=" + flags[1], url},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.SameList(t, program(t, words...), file)
		})
	}
	t.Run("a range", func(t *testing.T) {
		testkit.SameList(t, program(t, "curl", "-sSf", "-r", "1000000-1499999", gateway), file[1_000_000:1_500_000])
	})
	t.Run("going on with a file", func(t *testing.T) {
		for _, words := range [][]string{{"curl", "-sSf", "-C", "-", "-o", "copy", gateway}, {"wget", "-q", "-c", "-O", "copy", gateway}} {
			written(t, "copy", file[:1_000_000])
			program(t, words...)
			if got, err := os.ReadFile("copy"); err != nil || !bytes.Equal(got, file) {
				t.Errorf("%s: %d bytes, %v", words[0], len(got), err)
			}
		}
	})
	text := scrape(t, metrics)
	if !strings.Contains(text, `multilink_request_size_bytes_count{algorithm="adaptive",link="wifi"`) || strings.Contains(text, "127.0.0.1") {
		t.Errorf("the metrics are\n%s", text)
	}
}
