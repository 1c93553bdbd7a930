package cli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

const user, password = "anneliese", "geheim@!"

// withCredentials adds the credentials to a URL.
func withCredentials(url string) string {
	return strings.Replace(url, "https://", "https://"+user+":geheim%40!@", 1)
}

// expectSecret fails if a text contains the credentials in any form.
func expectSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{user, "geheim", base64.StdEncoding.EncodeToString([]byte(user + ":" + password))} {
		testkit.Holds(t, !strings.Contains(text, secret), what, secret, text)
	}
}

// expectFilesSecret fails if a file here, or its name, contains the credentials.
func expectFilesSecret(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		names = append(names, path)
		expectSecret(t, "a name", path)
		text, err := os.ReadFile(path)
		expectSecret(t, path, string(text))
		return err
	})
	testkit.Holds(t, err == nil, err)
	return names
}

// TestCredentialsInURLs runs the program as a process, because other processes can read its
// arguments.
func TestCredentialsInURLs(t *testing.T) {
	var mu sync.Mutex
	var child *exec.Cmd
	var seen strings.Builder
	requests, strangers, fails := 0, 0, false
	metrics := freeAddress(t)
	look := func() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child.Process.Pid))
		testkit.Holds(t, err == nil && bytes.Contains(text, []byte("get\x00https://")), text, err)
		seen.Write(text)
		seen.WriteString(scrape(t, metrics))
	}
	foreign, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Header.Get("Authorization") != "" {
			strangers++
		}
		mu.Unlock()
		content(w, r)
	}))
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests == 1 {
			look()
		}
		u, p, _ := r.BasicAuth()
		switch {
		case u != user || p != password:
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		case r.URL.Path == "/moved":
			http.Redirect(w, r, withCredentials("https://"+r.Host)+"/dir/file.bin", http.StatusFound)
			return
		case r.URL.Path == "/away":
			http.Redirect(w, r, foreign, http.StatusFound)
			return
		case r.URL.Path == "/nowhere":
			http.Redirect(w, r, "ftp://"+user+":geheim@h/", http.StatusFound)
			return
		case fails && r.Method == http.MethodGet && r.Header.Get("Range") != "":
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+fmt.Sprintf("/%d", len(file)))
			w.WriteHeader(http.StatusPartialContent)
			w.Write(file[:100])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		content(w, r)
	}))
	root := strings.TrimSuffix(url, "/dir/file.bin")
	for name, test := range map[string]struct {
		url   string
		flags []string
		fails bool
		want  int
	}{
		"good":                      {withCredentials(url), nil, false, 0},
		"good, JSON":                {withCredentials(url), []string{"--json", "--log-format", "json"}, false, 0},
		"moved":                     {withCredentials(root + "/moved"), nil, false, 0},
		"away":                      {withCredentials(root + "/away"), nil, false, 0},
		"led to what is no way":     {withCredentials(root + "/nowhere"), nil, false, 1},
		"cut off":                   {withCredentials(url), []string{"--algorithm", "naive"}, true, 1},
		"wrong":                     {strings.Replace(url, "https://", "https://"+user+":geheim@", 1), nil, false, 1},
		"nobody there":              {"https://" + user + ":geheim@127.0.0.1:1/f", nil, false, 1},
		"over plain HTTP":           {"http://" + user + ":geheim@127.0.0.1:1/f", []string{"--checksum", noChecksum}, false, 2},
		"over plain HTTP, unproven": {"http://" + user + ":geheim@127.0.0.1:1/f", nil, false, 2},
		"no port":                   {"https://" + user + ":geheim@127.0.0.1:port/f", nil, false, 2},
		"no escape":                 {"https://" + user + ":geheim%@127.0.0.1/f", nil, false, 2},
		"a slash in the password":   {"https://" + user + ":geheim/@127.0.0.1/f", nil, false, 2},
		"no scheme":                 {user + ":geheim@127.0.0.1/f", nil, false, 2},
		"no file name":              {"https://" + user + ":geheim@127.0.0.1", nil, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			giveUp := "2s"
			if test.want == 0 {
				giveUp = "10s" // A busy machine may be slow.
			}
			arguments := append([]string{"get", test.url, "--link", "wifi=lo", "--link", "lte=lo", "--run-dir", "run",
				"--log-level", "debug", "--give-up", giveUp, "--metrics", metrics}, append(flags, test.flags...)...)
			if test.want < 2 {
				arguments = append(arguments, "-o", "copy")
			}
			mu.Lock()
			requests, fails = 0, test.fails
			seen.Reset()
			child = asProcess(t, arguments...)
			var stdout, stderr bytes.Buffer
			child.Stdout, child.Stderr = &stdout, &stderr
			testkit.OK(t, child.Start())
			mu.Unlock()
			child.Wait()
			mu.Lock()
			defer mu.Unlock()
			testkit.Same(t, child.ProcessState.ExitCode(), test.want, &stderr)
			expectSecret(t, "stdout", stdout.String())
			expectSecret(t, "stderr", stderr.String())
			expectSecret(t, "the list of processes, or the metrics", seen.String())
			names := expectFilesSecret(t)
			if got, _ := os.ReadFile("copy"); test.want == 0 && !bytes.Equal(got, file) {
				t.Errorf("the file differs from the server's; the directory holds %v", names)
			}
			testkit.Same(t, requests > 0, strings.Contains(test.url, strings.TrimPrefix(root, "https://")), requests)
			testkit.Same(t, slices.Contains(names, "copy.part.state"), test.fails, names)
		})
	}
	testkit.Holds(t, strangers <= 0, strangers)
}

// A client of the proxy sends credentials in Authorization.
func TestTheProxyTakesNoCredentialsInURLs(t *testing.T) {
	asked := false
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = true }))
	proxy := startProxy(t, append(flags, "--link", "wifi=lo")...)
	for _, target := range []string{"/" + withCredentials(url), withCredentials(url), "ftp://" + user + ":geheim@h/f"} {
		out := string(program(t, "curl", "-sS", "--path-as-is", "--request-target", target, "http://"+proxy))
		if !strings.Contains(out, "multilink: the URL holds credentials") && !strings.Contains(out, `multilink: "ftp://…@h/f" is not a URL`) {
			t.Errorf("%s is answered with %q", target, out)
		}
		expectSecret(t, "the answer", out)
	}
	testkit.Holds(t, !asked, "the server was asked")
}
