package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/daemon"
	"github.com/linklab/linklab/client/internal/eventually"
	"github.com/linklab/linklab/client/internal/quantity"
)

// startDaemon runs "multilink serve" in the working directory. stop ends it and returns its
// standard error.
func startDaemon(t *testing.T, flags ...string) (stop func() string) {
	t.Helper()
	var code int
	var stderr string
	var wg sync.WaitGroup
	wg.Go(func() {
		code, _, stderr = run(append([]string{"serve", "--socket", "socket", "--state-dir", "state", "--directory", "files"}, flags...)...)
	})
	for range 1000 {
		// The socket is there before the daemon listens on it.
		if conn, err := net.Dial("unix", "socket"); err == nil {
			conn.Close()
			return sync.OnceValue(func() string {
				syscall.Kill(os.Getpid(), syscall.SIGTERM)
				wg.Wait()
				if code != 0 {
					t.Errorf("the daemon ends with exit code %d, stderr %q", code, stderr)
				}
				return stderr
			})
		}
		time.Sleep(10 * time.Millisecond) // Until it is there.
	}
	wg.Wait()
	t.Fatalf("the daemon does not start: exit code %d, stderr %q", code, stderr)
	return nil
}

func TestTheDaemonDownloads(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	t.Chdir(t.TempDir())
	if err := os.Mkdir("files", 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("link: [wifi=lo, lte=lo]\ncap: [lte=1GB]\nca-file: %s\nlog-level: info\nlog-format: json\nmetrics: unix:metrics\n", flags[1])
	if err := os.WriteFile("c.yaml", []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(socketVariable, "socket")
	stop := startDaemon(t, "--config", "c.yaml")
	defer stop()

	if code, stdout, stderr := run("status"); code != 0 || !strings.HasPrefix(stdout, "no downloads\n") || stderr != "" {
		t.Errorf("status: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr := run("add", url, "--wait", "--json")
	var d daemon.Download
	if err := json.Unmarshal([]byte(stdout), &d); code != 0 || err != nil || d.State != daemon.Complete || d.Size != quantity.Bytes(len(file)) || d.Output != "file.bin" {
		t.Fatalf("add: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if got, err := os.ReadFile(filepath.Join("files", "file.bin")); err != nil || !bytes.Equal(got, file) {
		t.Errorf("the file differs from the server's (%v)", err)
	}
	if code, _, stderr := run("add", url); code != 1 || !strings.Contains(stderr, "file.bin: the file exists") {
		t.Errorf("adding it again: exit code %d, stderr %q", code, stderr)
	}
	if code, stdout, stderr := run("add", url, "-o", "copy", "--checksum", "sha-256="+strings.Repeat("0", 64), "--wait"); code != 1 ||
		!strings.Contains(stdout, "2 failed copy\n") || !strings.Contains(stderr, "download 2 is failed: the file has the SHA-256 ") {
		t.Errorf("a wrong checksum: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr = run("status")
	for _, want := range []string{"ID  STATE ", "1   complete  5.0  5.0", "lte ", "1000.0 "} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("status: exit code %d, stderr %q, %q is not in\n%s", code, stderr, want, stdout)
		}
	}
	code, stdout, _ = run("status", "1", "--json")
	var status struct {
		Downloads []daemon.Download
		Links     []daemon.LinkStatus
	}
	if err := json.Unmarshal([]byte(stdout), &status); code != 0 || err != nil || len(status.Downloads) != 1 || len(status.Links) != 2 ||
		status.Links[0].Used+status.Links[1].Used < quantity.Bytes(2*len(file)) {
		t.Errorf("status --json: exit code %d, %v in %s", code, err, stdout)
	}
	if text := scrape(t, "metrics"); !strings.Contains(text, `multilink_received_bytes_total{algorithm="adaptive",link="wifi",run="",scenario="",seed=""}`) {
		t.Errorf("the metrics are\n%s", text)
	}
	for _, line := range strings.Split(strings.TrimSpace(stop()), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("a log line is %q", line)
		}
	}
	if left, _ := filepath.Glob("*"); fmt.Sprint(left) != "[c.yaml files state]" {
		t.Errorf("%v is left", left)
	}
}

func TestARestartedDaemonGoesOn(t *testing.T) {
	arrived := make(chan struct{}, 100)
	var works atomic.Bool
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if works.Load() || r.Method == http.MethodHead {
			content(w, r)
			return
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	t.Chdir(t.TempDir())
	if err := os.Mkdir("files", 0o700); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--link", "wifi=lo", "--parallel", "1")
	stop := startDaemon(t, flags...)
	for _, name := range []string{"one", "two", "three"} {
		if code, _, stderr := run("add", url, "-o", name, "--socket", "socket"); code != 0 {
			t.Fatal(stderr)
		}
	}
	<-arrived
	if code, stdout, stderr := run("cancel", "3", "--socket", "socket"); code != 0 || stdout != "3 cancelled three\n" {
		t.Errorf("cancel: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	stop()
	works.Store(true)

	stop = startDaemon(t, flags...)
	defer stop()
	c := daemon.NewClient("socket")
	defer c.Close()
	for id, want := range map[int]daemon.State{1: daemon.Complete, 2: daemon.Complete, 3: daemon.Cancelled} {
		if d, err := c.Wait(t.Context(), id); err != nil || d.State != want {
			t.Errorf("download %d is %+v, %v, want %s", id, d, err, want)
		}
	}
	for _, name := range []string{"one", "two"} {
		if got, err := os.ReadFile(filepath.Join("files", name)); err != nil || !bytes.Equal(got, file) {
			t.Errorf("%s differs from the server's file (%v)", name, err)
		}
	}
}

// A file that another program saves under the name during the download stays. The downloaded file
// stays, too.
func TestTheDaemonReplacesNothing(t *testing.T) {
	arrived, saved := make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if requests.Add(1) == 1 {
				close(arrived)
			}
			<-saved
		}
		content(w, r)
	}))
	t.Chdir(t.TempDir())
	if err := os.Mkdir("files", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(socketVariable, "socket")
	stop := startDaemon(t, append(flags, "--link", "wifi=lo", "--parallel", "1")...)
	defer stop()
	for _, output := range []string{"x", "y"} {
		if code, _, stderr := run("add", url, "-o", output); code != 0 {
			t.Fatal(stderr)
		}
	}
	for _, output := range []string{"x", "./x", "y/../x", "z//../x"} {
		if code, _, stderr := run("add", url, "-o", output); code != 1 || !strings.Contains(stderr, "x: another download in the queue writes this file") {
			t.Errorf("adding %s as well: exit code %d, stderr %q", output, code, stderr)
		}
	}
	<-arrived
	name := filepath.Join("files", "x")
	if err := errors.Join(os.WriteFile(name, []byte("saved meanwhile"), 0o600), os.WriteFile(name[:len(name)-1]+"y", []byte("saved before"), 0o600)); err != nil {
		t.Fatal(err)
	}
	close(saved)
	c := daemon.NewClient("socket")
	defer c.Close()
	for id, want := range map[int]string{1: name, 2: filepath.Join("files", "y")} {
		if d, err := c.Wait(t.Context(), id); err != nil || d.State != daemon.Failed || d.Error != want+": the file exists: give another name or remove it" {
			t.Errorf("the download ends as %+v, %v", d, err)
		}
	}
	if text, err := os.ReadFile(name); string(text) != "saved meanwhile" {
		t.Errorf("the file holds %.20q (%v)", text, err)
	}
	if code, _, stderr := run("add", url, "-o", "./x"); code != 1 || !strings.Contains(stderr, name+": the file exists") {
		t.Errorf("adding ./x while x is there: exit code %d, stderr %q", code, stderr)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	before := requests.Load()
	if code, stdout, stderr := run("add", url, "-o", "./x", "--wait"); code != 0 || stdout != "3 complete x\n" {
		t.Errorf("adding ./x again: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, file) {
		t.Errorf("the file differs from the server's (%v)", err)
	}
	if requests.Load() != before {
		t.Error("what was downloaded before was asked for again")
	}
	stop()
	if entries, _ := os.ReadDir("files"); len(entries) != 2 {
		t.Errorf("%v is in the directory, want x and y", entries)
	}
}

// If no link reaches the server, the daemon begins the download when one does.
func TestTheDaemonWaitsForTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, flags := serve(t, http.NotFoundHandler()) // For the certificate, which all test servers share.
	t.Chdir(t.TempDir())
	if err := os.Mkdir("files", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(socketVariable, "socket")
	stop := startDaemon(t, append(flags, "--link", "wifi=lo", "--link", "later=none0")...)
	defer stop()
	if code, _, stderr := run("add", "https://"+address+"/file.bin"); code != 0 {
		t.Fatal(stderr)
	}
	waiting := regexp.MustCompile(`(?m)^1   waiting .* file.bin: link wifi: .*connection refused; link later: .*no such device; tries again at \d\d:\d\d:\d\d$`)
	var stdout string
	eventually.Is(t, "the download waits for the server", func() bool {
		_, stdout, _ = run("status")
		return waiting.MatchString(stdout)
	})

	server := httptest.NewUnstartedServer(http.HandlerFunc(content))
	server.Listener.Close()
	if server.Listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	c := daemon.NewClient("socket")
	defer c.Close()
	if d, err := c.Wait(t.Context(), 1); err != nil || d.State != daemon.Complete || d.Error != "" {
		t.Errorf("the download is %+v, %v", d, err)
	}
}

func TestRequestsToTheDaemonThatAreWrong(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	t.Chdir(t.TempDir())
	if err := os.Mkdir("files", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(socketVariable, "socket")
	if code, _, stderr := run("status"); code != 1 || !strings.Contains(stderr, "no daemon answers on socket (multilink serve starts one)") {
		t.Errorf("without a daemon: exit code %d, stderr %q", code, stderr)
	}
	stop := startDaemon(t, append(flags, "--link", "lo")...)
	defer stop()
	if err := os.WriteFile("files/socket", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		line string
		code int
		want string
	}{
		{"add", 2, "add takes one URL or more"},
		{"add " + url + " " + url + " -o x", 2, "--output and --checksum are for one URL, not 2"},
		{"add http://h/f", 1, `"http://h/f" is not a URL to download`},
		{"add " + url + " -o ../x", 1, `"../x" is not a name inside the daemon's directory`},
		{"add " + url + " -o /etc/x", 1, `"/etc/x" is not a name inside the daemon's directory`},
		{"add " + url + " -o a/..", 1, `"." is not a name inside the daemon's directory`},
		{"add " + url + " -o socket/x", 1, "files/socket/x: not a directory"},
		{"add " + url + " -o x.part", 1, `"x.part" ends in .part, as files of unfinished downloads do: give another name`},
		{"add " + url + " --checksum md5=0", 1, "allowed is sha-256="},
		{"cancel", 2, "cancel takes one number or more"},
		{"cancel one", 2, `"one" is not the number of a download`},
		{"cancel 7", 1, "there is no such download: 7"},
		{"status 7", 1, "there is no such download: 7"},
		{"serve --link lo --socket socket --state-dir other", 1, "another process listens on socket"},
		{"serve --link lo --socket socket2 --state-dir state", 1, "another daemon uses it"},
	} {
		if code, _, stderr := run(strings.Fields(test.line)...); code != test.code || !strings.Contains(stderr, test.want) {
			t.Errorf("multilink %s: exit code %d, stderr %q, want %d and %q", test.line, code, stderr, test.code, test.want)
		}
	}
}
