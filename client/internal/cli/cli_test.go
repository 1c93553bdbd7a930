package cli

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/tests/testkit"
)

// programVariable is the environment variable that turns the test's program into multilink.
const programVariable = "MULTILINK_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// asProcess returns multilink as a separate process.
func asProcess(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], arguments...)
	command.Env = append(os.Environ(), programVariable+"=1")
	return command
}

// run runs the program.
func run(arguments ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Main(arguments, &out, &err)
	return code, out.String(), err.String()
}

// expectFailure runs the program. It fails unless the exit code and words of the error are these.
func expectFailure(t *testing.T, code int, want string, arguments ...string) {
	t.Helper()
	if got, _, stderr := run(arguments...); got != code || !strings.Contains(stderr, want) {
		t.Errorf("%q: exit code %d, stderr %q, want %d and %q", arguments, got, stderr, code, want)
	}
}

// expectFile downloads with these arguments, and fails unless the file is the tests' file.
func expectFile(t *testing.T, arguments ...string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "copy")
	code, _, stderr := run(append([]string{"get", "-o", name}, arguments...)...)
	if got, err := os.ReadFile(name); code != 0 || err != nil || !bytes.Equal(got, file) {
		t.Errorf("%q: exit code %d, %d of %d bytes, stderr %q", arguments, code, len(got), len(file), stderr)
	}
}

// written writes a file and returns its name.
func written(t *testing.T, name string, content []byte) string {
	t.Helper()
	testkit.OK(t, os.WriteFile(name, content, 0o600))
	return name
}

// summaryOf returns the summary that --json prints.
func summaryOf(t *testing.T, stdout string) (s rundir.Summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("%v: %q", err, stdout)
	}
	return s
}

// serve starts an HTTP/2 server on loopback. It returns the URL of its file and the flags that
// every download from it needs.
func serve(t *testing.T, handler http.Handler) (url string, flags []string) {
	t.Helper()
	return serveTLS(t, handler, true, nil)
}

// serveHTTP1 is serve without HTTP/2.
func serveHTTP1(t *testing.T, handler http.Handler) (url string, flags []string) {
	t.Helper()
	return serveTLS(t, handler, false, nil)
}

// serveTLS is serve with this TLS configuration, or the default for nil.
func serveTLS(t *testing.T, handler http.Handler, http2 bool, config *tls.Config) (url string, flags []string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS, server.EnableHTTP2 = config, http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL + "/dir/file.bin", []string{"--ca-file", authorityOf(t, server)}
}

// authorityOf writes the certificate of a server to a file.
func authorityOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return written(t, filepath.Join(t.TempDir(), "ca.pem"), text)
}

// file is the payload of the tests.
var file = func() []byte {
	content := make([]byte, 2_000_000)
	source := rand.NewChaCha8([32]byte{3})
	source.Read(content)
	return content
}()

// checksum is that of the file, and noChecksum that of no file.
var (
	checksum   = fmt.Sprintf("sha-256=%x", sha256.Sum256(file))
	noChecksum = "sha-256=" + strings.Repeat("0", 64)
)

func content(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"1"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
}

// Without TLS only a checksum proves what arrived.
func TestPlainHTTPWithAChecksum(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(content))
	t.Cleanup(server.Close)
	flags := []string{server.URL + "/f", "--link", "wifi=lo", "--link", "lte=lo", "--checksum"}
	expectFile(t, append(flags, checksum)...)
	t.Chdir(t.TempDir())
	expectFailure(t, 1, "the file has the SHA-256 ", append(append([]string{"get"}, flags...), noChecksum)...)
}

func TestGetWithEveryAlgorithm(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	sum := strings.TrimPrefix(checksum, "sha-256=")
	type example struct {
		algorithm string
		flags     []string
	}
	tests := []example{{"alg3", []string{"--algorithm", "alg3", "--link", "lo", "--plain"}}}
	values := map[string]string{
		"upper-limit": "300kB", "first-request": "64KiB", "bandwidth": "wifi=80Mbit/s", "padding": "0.3",
		"overlap": "0.8", "window": "500ms", "connections": "4",
		"segment": "100KiB", "playback-rate": "20Mbit/s", "playback-buffer": "100kB",
		"energy-model": models + "/galaxy-s3.yaml", "slowdown": "0.5",
	}
	for _, a := range schedule.Algorithms {
		// Run files record the name, even if the alias was given.
		flags := []string{"--algorithm", cmp.Or(a.Alias, a.Name), "--link", "wifi=lo"}
		if !a.OneLink {
			flags = append(flags, "--link", "lte=lo")
		}
		for _, option := range a.Options {
			flags = append(flags, "--"+option, values[option])
		}
		tests = append(tests, example{a.Name, flags})
	}
	for _, test := range tests {
		t.Run(test.algorithm, func(t *testing.T) {
			t.Chdir(t.TempDir())
			arguments := append([]string{"get", url, "--checksum", checksum, "--run-dir", "run", "--json"}, flags...)
			code, stdout, stderr := run(append(arguments, test.flags...)...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			if got, err := os.ReadFile("file.bin"); err != nil || !bytes.Equal(got, file) {
				t.Errorf("the file differs from the server's (%v)", err)
			}
			printed := summaryOf(t, stdout)
			testkit.Same(t, fmt.Sprint(summaryIn(t, "run")), fmt.Sprint(printed), stdout)
			if printed.Outcome != "complete" || printed.SHA256 != sum || printed.Algorithm != test.algorithm ||
				printed.URL != url || printed.Size != quantity.Bytes(len(file)) || printed.Download <= 0 || printed.Version == "" || printed.Go == "" {
				t.Errorf("summary %+v", printed)
			}
			// On loopback one link may have everything before the other is ready.
			var sum quantity.Bytes
			for name, l := range printed.Links {
				sum += l.Bytes
				testkit.Holds(t, l.Device == "lo" && (l.Bytes <= 0 || l.Requests != 0 && l.MinRTT != 0 && l.Finish != 0 && l.Peak != 0), name, l)
			}
			if want := strings.Count(strings.Join(test.flags, " "), "--link"); len(printed.Links) != want || sum != quantity.Bytes(len(file)) {
				t.Errorf("%d links carried %d bytes, want %d and %d", len(printed.Links), sum, want, len(file))
			}
			expectAlone(t, ".", "file.bin", "run")
		})
	}
}

// eventNames returns the kinds of the lines of a client.jsonl.
func eventNames(t *testing.T, path string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	testkit.OK(t, err)
	for line := range strings.Lines(string(text)) {
		var stamp rundir.Stamp
		if err := json.Unmarshal([]byte(line), &stamp); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		names = append(names, stamp.Event)
	}
	return names
}

func TestGetPrintsASummary(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	t.Chdir(t.TempDir())
	arguments := append([]string{"get", url, "--link", "lo", "--algorithm", "single", "-o", "copy", "--run-dir", "run"}, flags...)
	code, stdout, stderr := run(arguments...)
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "copy: 2000000 bytes in ") || !strings.Contains(stdout, "\n  lo: 2000000 bytes in 1 requests until ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	names := eventNames(t, "run/client.jsonl")
	want := []string{"start", "connected", "size", "request", "first_byte", "end", "done"}
	for _, name := range names {
		if len(want) > 0 && name == want[0] {
			want = want[1:]
		}
	}
	testkit.Holds(t, len(want) <= 0, names, want)
	if code, stdout, stderr := run(append(arguments, "--quiet")...); code != 0 || stdout+stderr != "" {
		t.Errorf("--quiet: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestFailureIsOneLineAndExitCode1(t *testing.T) {
	url, flags := serve(t, http.NotFoundHandler())
	t.Chdir(t.TempDir())
	code, stdout, stderr := run(append([]string{"get", url, "--link", "lo", "--run-dir", "run", "--json"}, flags...)...)
	if want := "multilink: link lo: the server answers HEAD with 404 Not Found\n"; code != 1 || stderr != want {
		t.Errorf("exit code %d, stderr %q, want 1 and %q", code, stderr, want)
	}
	testkit.Holds(t, strings.Contains(stdout, `"outcome":"failed"`), stdout)
	if names := eventNames(t, "run/client.jsonl"); names[len(names)-1] != "done" {
		t.Errorf("client.jsonl ends with %s", names[len(names)-1])
	}
}

func TestSignalsEndCleanly(t *testing.T) {
	for signal, name := range map[syscall.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"} {
		if ossignal.Ignored(signal) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			stop := make(chan struct{})
			url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					content(w, r)
					return
				}
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %s/%d", strings.TrimPrefix(r.Header.Get("Range"), "bytes="), len(file)))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(file[:1000])
				w.(http.Flusher).Flush()
				once.Do(func() { syscall.Kill(os.Getpid(), signal) })
				<-stop
			}))
			defer close(stop)
			t.Chdir(t.TempDir())
			code, stdout, stderr := run(append([]string{"get", url, "--link", "a=lo", "--link", "b=lo", "--run-dir", "run"}, flags...)...)
			if want := "multilink: interrupted by " + name + "\n"; code != 128+int(signal) || stdout != "" || stderr != want {
				t.Errorf("exit code %d, stdout %q, stderr %q, want %d and %q", code, stdout, stderr, 128+int(signal), want)
			}
			if names := eventNames(t, "run/client.jsonl"); names[len(names)-1] != "done" {
				t.Errorf("client.jsonl ends with %s", names[len(names)-1])
			}
			testkit.Same(t, summaryIn(t, "run").Outcome, rundir.Interrupted)
			if entries, _ := os.ReadDir("."); len(entries) != 1 && len(entries) != 3 {
				t.Errorf("%v is left, want the run directory, and part and state if bytes arrived", entries)
			}
		})
	}
}

// The rate is that of this call only.
func TestSummaryOfAResumedDownload(t *testing.T) {
	for resumed, want := range map[quantity.Bytes]string{
		0:         "copy: 5000000 bytes in 2.000 s, 20.00 Mbit/s, sha-256 00\n",
		3_000_000: "copy: 5000000 bytes, of these now 2000000 bytes in 2.000 s, 8.00 Mbit/s, sha-256 00\n",
		5_000_000: "copy: 5000000 bytes, of these now 0 bytes in 2.000 s, 0.00 Mbit/s, sha-256 00\n",
	} {
		var printed strings.Builder
		printSummary(&printed, "copy", nil, rundir.Summary{Size: 5_000_000, Resumed: resumed, Download: 2e9, SHA256: "00"})
		testkit.Same(t, printed.String(), want)
	}
}

func TestWrongUseIsExitCode2(t *testing.T) {
	const unprintable = "in the URL has characters that cannot be printed: give one with --output"
	t.Chdir(t.TempDir())
	for _, test := range []struct{ line, want string }{
		{"", "a command is needed: get, put, probe, proxy, workload, "},
		{"download", `there is no command "download"`},
		{"serve", `there is no command "serve"`},
		{"get", "get takes 1 arguments (URL), not 0"},
		{"get https://h/f https://h/g --link lo", "get takes 1 arguments (URL), not 2"},
		{"get http://h/f --link lo", `"http://h/f" is not a URL to download: allowed is https://HOST/PATH, and http:// with --checksum`},
		{"get ftp://h/f --link lo --checksum " + noChecksum, `"ftp://h/f" is not a URL to download`},
		{"get https:///f --link lo", "is not a URL to download"},
		{"get https://h/ --link lo", "does not end in a file name"},
		{"get https://h/f -o x.part --link lo", `"x.part" ends in .part, as files of unfinished downloads do: give another name`},
		{"get https://h/f.part.state --link lo", `"f.part.state" ends in .part.state,`},
		{"get https://h/f", "at least one --link is needed"},
		{"get https://h/f --link wlan7", `there is no network device "wlan7": this machine has `},
		{"get https://h/f --link =lo", "--link =lo: allowed is NAME=DEVICE or DEVICE"},
		{"get https://h/f --link l\xff=lo", "allowed is NAME=DEVICE or DEVICE, the name in UTF-8"},
		{"get https://h/f --link lo --metrics 127.0.0.1:0 --metrics-label run=\xff", "allowed are values in UTF-8"},
		{"get https://h/f --link a=lo --link a=lo", "the name a is taken"},
		{"get https://h/f --link a=lo --link b=lo --algorithm single", "--algorithm single: it uses one --link, not 2"},
		{"get https://h/f --link lo --algorithm alg4", "--algorithm alg4: allowed are single, "},
		{"get https://h/f --link lo --algorithm gb-e", "--algorithm gb-e: it needs --playback-rate"},
		{"get https://h/f --link lo --algorithm dynsub", "--algorithm dynsub: it needs --playback-rate"},
		{"get https://h/f --link lo --algorithm emptcp-http", "--algorithm emptcp-http: it needs --energy-model"},
		{"get https://h/f --link lo --objective energy", "--algorithm adaptive-energy: it needs --energy-model"},
		{"get https://h/f --link lo --objective energy --algorithm alg3", "--objective energy: it is for the algorithm adaptive, not alg3"},
		{"get https://h/f --link lo --objective joy", "--objective joy: allowed are time and energy"},
		{"get https://h/f --link lo --slowdown -1", "--slowdown -1: allowed is 0 to 1000"},
		{"get https://h/f --link lo --playback-rate fast", `--playback-rate fast: "fast" is not a rate`},
		{"get https://h/f --link lo --playback-buffer 0", "is not a size"},
		{"get https://h/f --link lo --segment 0", "is not a size"},
		{"get https://h/f --link lo --energy-model no.yaml", "--energy-model: open no.yaml: no such file or directory"},
		{"get https://h/f --link lo --energy-model " + models + "/galaxy-s3.yaml", "--link lo=lo: with --energy-model it must tell whether it is Wi-Fi, LTE, 5G, Satellite, Fixed or Other"},
		{"get https://h/f --link wifi=lo --energy-model " + models + "/galaxy-s7.csv", "--energy-model: " + models + "/galaxy-s7.csv:1: KEY: VALUE lines are needed"},
		{"get https://h/f --link lo --bandwidth lo", "--bandwidth lo: allowed is NAME=RATE"},
		{"get https://h/f --link lo --bandwidth lte=1Mbit/s", `--bandwidth lte=1Mbit/s: there is no link "lte", the links are lo`},
		{"get https://h/f --link lo --bandwidth lo=fast", `--bandwidth lo=fast: "fast" is not a rate`},
		{"get https://h/f --link lo --upper-limit 0", "is not a size"},
		{"get https://h/f --link lo --first-request x", "is not a size"},
		{"get https://h/f --link lo --padding 0", "--padding 0: allowed is above 0 to 1"},
		{"get https://h/f --link lo --padding NaN", "--padding NaN: allowed is above 0 to 1"},
		{"get https://h/f --link lo --padding 0.2 --plain", "--plain: it and --padding exclude each other"},
		{"get https://h/f --link lo --overlap 1.1", "--overlap 1.1: allowed is above 0 to 1"},
		{"get https://h/f --link lo --window 0s", "--window 0s: allowed are times above 0"},
		{"get https://h/f --link lo --give-up -1s", "--give-up -1s: allowed are times"},
		{"get https://h/f --link lo -4 -6", "--ipv4: it and --ipv6 exclude each other"},
		{"get https://h/f --link lo --http3-only --algorithm alg3", "--algorithm alg3: it is as published, over HTTP/2"},
		{"proxy --link lo --http3 --algorithm alg1", "--algorithm alg1: it is as published, over HTTP/2"},
		{"get https://h/f --link lo --http3=yes", "--http3 yes: allowed are true, dns and false"},
		{"get http://h/f --link lo --http3-only --checksum " + noChecksum, "--http3-only true: the URL is of http, allowed is https"},
		{"get https://h/f --link lo --checksum md5=00", "--checksum md5=00: allowed is sha-256= and 64 hexadecimal digits"},
		{"get https://h/f --link lo --ca-file missing.pem", "--ca-file missing.pem: open missing.pem"},
		{"get https://h/f --link lo --ca-file /dev/null", "there is no certificate in it"},
		{"get https://h/f --link lo --log-level loud", "--log-level loud: allowed are debug, info, warn, error"},
		{"get https://h/f --link lo --log-format xml", "--log-format xml: allowed are text and json"},
		{"get https://h/f --link lo --dns here", `--dns here: "here" is not a name server`},
		{"get https://h/f --link lo --dns lte=1.1.1.1", `--dns lte=1.1.1.1: there is no link "lte"`},
		{"get https://h/f --link lo --speed 3", "unknown flag: --speed"},
		{"get https://h/f --link lo -r 5", "--range 5: allowed are one FIRST-LAST"},
		{"get https://h/f --link lo -r 0-1,3-4", "--range 0-1,3-4: allowed"},
		{"get https://h/f --link lo -r 5-4", "--range 5-4: allowed"},
		{"get https://h/f --link lo -r -0", "--range -0: allowed"},
		{"get https://h/f --link lo --max-redirs -1", "--max-redirs -1: allowed are numbers from 0"},
		{"get http://h/f --link lo -H Authorization:secret --checksum " + noChecksum, "the request holds credentials, which over plain HTTP"},
		{"get http://h/f --link lo -H Cookie:a=secret --checksum " + noChecksum, "the request holds credentials, which over plain HTTP"},
		{"get https://u:secret@h/f --link lo -H Authorization:secret", "exclude each other"},
		{"get https://h/%1b%5b2J --link lo", unprintable},
		{"get https://h/%c2%9b2J --link lo", unprintable},
		{"get https://h/a%0ab --link lo", unprintable},
		{"get https://h/%00 --link lo", unprintable},
		{"get https://h/%e2%80%aeb --link lo", unprintable},
		{"get https://h/%ff --link lo", unprintable},
		{"version now", "version takes 0 arguments"},

		{"put film", "takes 2 arguments (FILE URL)"},
		{"put film http://host/x", "is not a URL to upload to"},
		{"put film https://a:b@host/x", "without credentials"},
		{"put film https://host/x", "at least one --link is needed"},
		{"put film https://host/x --link lo --algorithm gb-p", "--algorithm gb-p: it plans downloads alone: allowed are "},

		{"probe --link wifi=lo --run-dir x", "--server is needed: https://HOST:PORT, or the URL of a file"},
		{"probe --link wifi=lo --server https://h", "--run-dir is needed: a directory for what is measured"},
		{"probe --link wifi=lo --server http://h --run-dir x", "--server http://h: allowed is https://HOST:PORT or https://HOST/PATH"},
		{"probe --link wifi=lo --server https://me:secret@h --run-dir x", "--server https://h: allowed is https://HOST:PORT or https://HOST/PATH, without credentials"},
		{"probe --link wifi=lo --server https://h --run-dir x --time 1ms", "--time 1ms: allowed are times from 1s"},
		{"probe --link wifi=lo --server https://h --run-dir x --link all=lo", "--link all: a directory is called like it"},

		{"proxy --link lo --listen here", "--listen here: allowed is HOST:PORT"},
		{"proxy --link lo --listen 0.0.0.0:0", "--listen 0.0.0.0:0: nobody else than this machine may use the proxy"},
		{"proxy --link lo --listen :8080", "--listen :8080: nobody else"},
		{"proxy --link lo --listen 127.0.0.1:0 --allow everyone", "--allow everyone: allowed is ADDRESS/BITS"},
		{"proxy --link lo --streams 0", "--streams 0: allowed are numbers from 1"},
		{"proxy --link lo --buffer 3kB", "--buffer 3kB: allowed are sizes from 1MiB"},
		{"proxy --link lo http://example.org/", "proxy takes 0 arguments"},

		{"workload", "a workload is needed: player, page"},
		{"workload film", `there is no workload "film"`},
		{"workload player", "player takes 1 argument (URL)"},
		{"workload player https://h/x --rate 1Mbit/s", "--size is needed"},
		{"workload player https://h/x --size 5MB", `--rate: "" is not a rate`},
		{"workload player https://h/x --size 5MB --rate 1Mbit/s --high 1MB", "not below --low and --start"},
		{"workload player https://h/x --size 5MB --rate 1Mbit/s --segment 1MB --segment-duration 2s", "it and --segment exclude each other"},
		{"workload page https://h/x --size 5MB --objects 1,2", "they have 3 bytes together, the file 5000"},
		{"workload rounds https://h/x --size 5MB", "--answer is needed"},
		{"workload paced https://h/x --size 5MB --rate 1bit/s", "a byte"},
		{"workload paced https://a:b@h/x --size 1MB --rate 1Mbit/s", "without credentials"},
		{"workload paced https://h/x --size 5MB --rate 1Mbit/s --device no", `there is no network device "no"`},
		{"workload paced --rate 1Mbit/s --mptcp https://h/x --size 5MB -- proxy", "that do not go through a proxy"},
		{"workload paced --rate 1Mbit/s https://h/x --size 5MB -- get", `"get" after -- is not`},

		{"completion", "a shell is needed: bash, fish, zsh"},
		{"completion fly", `there is no script for "fly": allowed are bash, fish, zsh`},
		{"completion bash x", "bash takes 0 arguments"},
	} {
		code, stdout, stderr := run(strings.Fields(test.line)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 2 {
			t.Errorf("multilink %s\nexit code %d, stdout %q, stderr %q\nwant 2 and %q", test.line, code, stdout, stderr, test.want)
		}
		testkit.Holds(t, !strings.Contains(stderr, "a:b") && !strings.Contains(stderr, "secret"), stderr)
		expectPrintable(t, "stderr", stderr)
	}
	expectAlone(t, ".")
}

func TestRunDirectoryThatCanNotBeMade(t *testing.T) {
	expectFailure(t, 1, "multilink: run directory: ", "get", "https://h/f", "--link", "lo", "--run-dir", "/dev/null/run")
}

func TestVersion(t *testing.T) {
	code, stdout, _ := run("version")
	testkit.Holds(t, code == 0 && strings.HasPrefix(stdout, "multilink "), code, stdout)
	code, stdout, _ = run("version", "--json")
	var fields map[string]string
	if err := json.Unmarshal([]byte(stdout), &fields); code != 0 || err != nil || fields["version"] == "" || !strings.HasPrefix(fields["go"], "go1.") {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
}

// models is the directory of linklab's energy models. Tests change their working directory.
var models = func() string {
	path, err := filepath.Abs("../../../profiles/energy")
	if err != nil {
		panic(err)
	}
	return path
}()

// slowWriter writes 4 kB after each pause: 4 MB/s at most if it is a millisecond.
type slowWriter struct {
	http.ResponseWriter
	pause time.Duration
}

func (w slowWriter) Write(p []byte) (n int, err error) {
	for piece := range slices.Chunk(p, 4<<10) {
		time.Sleep(w.pause) // This server is slow.
		written, err := w.ResponseWriter.Write(piece)
		if n += written; err != nil {
			return n, err
		}
	}
	return n, nil
}
