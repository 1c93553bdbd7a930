package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// modified is the date of the tests' file.
var modified = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// provenBytes returns how many bytes the state of a part lists, 0 without a state.
func provenBytes(t *testing.T, part string) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(part + ".state")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var s struct {
		Written [][2]int64 `json:"written"`
	}
	testkit.OK(t, json.Unmarshal([]byte(line), &s))
	for _, r := range s.Written {
		bytes += r[1]
	}
	return bytes
}

// slowBody sends 400 kB/s.
type slowBody struct{ http.ResponseWriter }

func (b slowBody) Write(p []byte) (int, error) {
	const piece = 8000
	for sent := 0; sent < len(p); sent += piece {
		time.Sleep(20 * time.Millisecond) // This server is slow.
		if n, err := b.ResponseWriter.Write(p[sent:min(len(p), sent+piece)]); err != nil {
			return sent + n, err
		}
		b.ResponseWriter.(http.Flusher).Flush()
	}
	return len(p), nil
}

// The successor of an expired signed URL continues the part if the checksum is known, even after
// SIGKILL. Else the part is refused.
func TestAnExpiredURLsSuccessorGoesOn(t *testing.T) {
	verified := []string{"--checksum", checksum}
	for name, test := range map[string]struct {
		etag   string
		date   time.Time
		flags  []string
		signal os.Signal
	}{
		"ETag":     {`"1"`, modified, nil, syscall.SIGINT},
		"killed":   {"", time.Time{}, verified, syscall.SIGKILL},
		"checksum": {"", time.Time{}, verified, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var signature atomic.Int64
			signature.Store(1)
			url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery != fmt.Sprintf("signature=%d", signature.Load()) {
					http.Error(w, "expired", http.StatusForbidden)
					return
				}
				if test.etag != "" {
					w.Header().Set("ETag", test.etag)
				}
				if signature.Load() == 1 && r.Method == http.MethodGet {
					w = slowBody{w}
				}
				http.ServeContent(w, r, "", test.date, bytes.NewReader(file))
			}))
			name := filepath.Join(t.TempDir(), "copy")
			flags = append(append(flags, "--link", "wifi=lo", "--connections", "1", "-o", name, "--json"), test.flags...)
			first := asProcess(t, append([]string{"get", url + "?signature=1"}, flags...)...)
			testkit.OK(t, first.Start())
			// A checkpoint follows after 5 s.
			testkit.Eventually(t, "bytes are in the part", func() bool { return provenBytes(t, name+".part") > 0 })
			testkit.OK(t, first.Process.Signal(test.signal))
			first.Wait()
			left := provenBytes(t, name+".part")
			if left < 500_000 {
				t.Fatalf("the first call left %d bytes", left)
			}
			signature.Store(2)
			code, stdout, stderr := run(append([]string{"get", url + "?signature=2"}, flags...)...)
			if test.flags == nil {
				if code != 1 || !strings.Contains(stderr, fmt.Sprintf("copy.part holds %d bytes of another file", left)) || provenBytes(t, name+".part") != left {
					t.Errorf("exit code %d, stderr %q", code, stderr)
				}
				return
			}
			if got, err := os.ReadFile(name); code != 0 || err != nil || !bytes.Equal(got, file) {
				t.Fatalf("exit code %d, stderr %q, %d bytes", code, stderr, len(got))
			}
			// The bytes of the first call are not requested again.
			summary := summaryOf(t, stdout)
			testkit.Holds(t, summary.Resumed >= quantity.Bytes(left) && summary.Links["wifi"].Bytes+summary.Resumed == quantity.Bytes(len(file)), left, summary)
			expectAlone(t, filepath.Dir(name), "copy")
		})
	}
}

const loginPage = "<!doctype html><title>Log in</title>"

func answerLogin(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	io.WriteString(w, loginPage)
}

// leavePart begins a download that an answer of 403 ends.
func leavePart(t *testing.T, refuse *atomic.Bool, arguments []string, part string) {
	t.Helper()
	refuse.Store(true)
	if code, _, stderr := run(arguments...); code != 1 || provenBytes(t, part) == 0 {
		t.Fatalf("exit code %d, stderr %q, %d bytes are left", code, stderr, provenBytes(t, part))
	}
	refuse.Store(false)
}

// cutBody ends the connection after so many bytes of an answer.
type cutBody struct {
	http.ResponseWriter
	left int
}

func (b *cutBody) Write(p []byte) (int, error) {
	n, _ := b.ResponseWriter.Write(p[:min(len(p), b.left)])
	if b.left -= n; b.left == 0 {
		http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

// partly serves the file. While refuse is set, it cuts each answer, and refuses the second half and the whole.
func partly(refuse *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var from int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		isWhole := r.Method == http.MethodGet && r.Header.Get("Range") == ""
		if refuse.Load() && (from > 200_000 || isWhole) {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if refuse.Load() {
			w = &cutBody{w, 250_000}
		}
		content(w, r)
	}
}

// With one link, a captive portal is reported, and the part stays unchanged after any number of
// calls.
func TestAPortalLeavesThePartAlone(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"page": {answerLogin, fmt.Sprintf("the answer is a web page of %d bytes instead of the file, as a captive portal answers", len(loginPage))},
		"511": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNetworkAuthenticationRequired) },
			"the answer is 511 Network Authentication Required, as a captive portal answers"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/login" {
				http.Redirect(w, r, "/login", http.StatusFound)
				return
			}
			answerLogin(w, r)
		}, "as a captive portal answers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refuse, portal atomic.Bool
			real := partly(&refuse)
			url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if portal.Load() {
					test.answer(w, r)
					return
				}
				real(w, r)
			}))
			output := filepath.Join(t.TempDir(), "copy")
			arguments := append([]string{"get", url, "--link", "wifi=lo", "-o", output, "--json"}, flags...)
			leavePart(t, &refuse, arguments, output+".part")
			before := snapshot(t, filepath.Dir(output))
			portal.Store(true)
			for range 2 {
				code, _, stderr := run(arguments...)
				testkit.Holds(t, code == 1 && strings.Contains(stderr, test.want), code, stderr, test.want)
				testkit.Same(t, snapshot(t, filepath.Dir(output)), before)
			}
			portal.Store(false)
			code, stdout, stderr := run(arguments...)
			if got, err := os.ReadFile(output); code != 0 || err != nil || !bytes.Equal(got, file) || strings.Contains(stdout, `"resumed_bytes":0,`) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// snapshot returns the names and contents of the files in a directory.
func snapshot(t *testing.T, directory string) string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	testkit.OK(t, err)
	var all strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(directory, e.Name()))
		testkit.OK(t, err)
		fmt.Fprintf(&all, "%s: %d bytes, %x\n", e.Name(), len(text), sha256.Sum256(text))
	}
	return all.String()
}
