package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// recordedHeaders records the headers of requests to a server.
type recordedHeaders struct {
	mu   sync.Mutex
	seen []http.Header
	next http.HandlerFunc
}

func (o *recordedHeaders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	header := r.Header.Clone()
	header.Set("Host", r.Host)
	o.seen = append(o.seen, header)
	o.mu.Unlock()
	o.next(w, r)
}

// expect fails unless every request had these fields. A field with an empty value must be absent.
func (o *recordedHeaders) expect(t *testing.T, want map[string]string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	testkit.Holds(t, len(o.seen) != 0, "nothing was asked for")
	for _, header := range o.seen {
		for name, value := range want {
			testkit.Same(t, header.Get(name), value, name)
		}
	}
}

// Every request to the server carries the user's fields. Secrets reach no other origin, file, log
// line or list of processes.
func TestWhatRequestsHold(t *testing.T) {
	foreign := &recordedHeaders{next: content}
	foreignURL, _ := serve(t, foreign)
	secrets := t.TempDir()
	fields := written(t, filepath.Join(secrets, "fields"), []byte("X-Token: geheim3\nX-Other: 5\n"))
	login := written(t, filepath.Join(secrets, "login"), []byte("Authorization: Basic YW5uZWxpZXNlOmdlaGVpbUAh\n"))
	t.Chdir(t.TempDir())
	written(t, "own", file)
	var pid int
	server := &recordedHeaders{}
	server.next = func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		testkit.Holds(t, err == nil && bytes.Contains(text, []byte("https://")) && !bytes.Contains(text, []byte("geheim")), text, err)
		if r.Method == http.MethodPut {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		if r.URL.Path == "/away" {
			http.Redirect(w, r, foreignURL, http.StatusFound)
			return
		}
		content(w, r)
	}
	url, flags := serve(t, server)
	away := strings.TrimSuffix(url, "/dir/file.bin") + "/away"
	said := []string{
		"-H", "X-Api-Key: geheim1", "--header=X-Empty;", "-HAccept: application/x", "-H", "@" + fields, "-A", "browser/1", "-H", "host: other.test:8",
		"-H", "Cookie: a=geheim2; b=c", "-H", "@" + login, "--link", "wifi=lo", "--link", "lte=lo", "--give-up", "1m",
	}
	want := map[string]string{
		"X-Api-Key": "geheim1", "Accept": "application/x", "X-Token": "geheim3", "X-Other": "5", "User-Agent": "browser/1",
		"Cookie": "a=geheim2; b=c", "Authorization": "Basic YW5uZWxpZXNlOmdlaGVpbUAh", "Host": "other.test:8",
	}
	for name, command := range map[string][]string{
		"get":    {"get", url, "-o", "copy", "--run-dir", "run", "--json"},
		"away":   {"get", away, "-o", "copy", "--run-dir", "run", "--log-level", "debug"},
		"put":    {"put", "own", url, "--run-dir", "run", "--json"},
		"probe":  {"probe", "--server", url, "--run-dir", "probes", "--time", "1s"},
		"failed": {"get", url + "?no", "-o", "copy", "--run-dir", "run", "--checksum", noChecksum},
	} {
		t.Run(name, func(t *testing.T) {
			server.seen, foreign.seen = nil, nil
			process := asProcess(t, append(append(command, said...), flags...)...)
			var out bytes.Buffer
			process.Stdout, process.Stderr = &out, &out
			server.mu.Lock() // Until pid is known.
			testkit.OK(t, process.Start())
			pid = process.Process.Pid
			server.mu.Unlock()
			testkit.Same(t, (process.Wait() != nil), (name == "failed"), out.String())
			server.expect(t, want)
			if name == "away" {
				foreign.expect(t, map[string]string{
					"X-Api-Key": "", "X-Token": "", "Cookie": "", "Authorization": "", "Accept": "application/x", "User-Agent": "browser/1",
				})
			}
			expectSecret(t, "the output", out.String())
			expectFilesSecret(t)
		})
	}
}

func TestRedirectsAreCounted(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/dir/file.bin" {
			content(w, r)
			return
		}
		http.Redirect(w, r, r.URL.Path[2:], http.StatusFound)
	}))
	url = strings.Replace(url, "/dir/", "/1/1/dir/", 1) // Two redirects.
	get := append(flags, url, "--link", "lo", "--give-up", "1m", "--max-redirs")
	expectFile(t, append(get, "2")...)
	for _, most := range []string{"0", "1"} {
		expectFailure(t, 1, "redirects more than "+most+" times", slices.Concat([]string{"get", "-o", ownFile(t) + ".copy"}, get, []string{most})...)
	}
}

func TestPartsOfAFile(t *testing.T) {
	size := len(file)
	digested := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:") // A wrong checksum of the whole.
		content(w, r)
	}
	whole := func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		content(w, r)
	}
	for name, handler := range map[string]http.HandlerFunc{"ranges": digested, "no ranges": whole} {
		url, flags := serve(t, handler)
		for slice, want := range map[string][]byte{
			"100-199": file[100:200], "0-0": file[:1], "1500000-": file[1_500_000:], "-1000": file[size-1000:], "-9999999": file,
			"1000000-99999999": file[1_000_000:], "1000000-1299999": file[1_000_000:1_300_000],
		} {
			if name == "ranges" && len(want) == size {
				continue // The digest belongs to this part.
			}
			t.Run(name+" "+slice, func(t *testing.T) {
				t.Parallel()
				own := ownFile(t) + ".copy"
				arguments := slices.Concat(flags, []string{"get", url, "-r", slice, "--link", "wifi=lo", "--link", "lte=lo", "--give-up", "1m", "-o"})
				code, _, stderr := run(append(arguments, own)...)
				if got, err := os.ReadFile(own); code != 0 || err != nil || !bytes.Equal(got, want) {
					t.Errorf("exit code %d, %d bytes instead of %d, stderr %q", code, len(got), len(want), stderr)
				}
				code, stdout, stderr := run(append(arguments, "-")...)
				testkit.Holds(t, code == 0 && stdout == string(want), code, len(stdout), len(want), stderr)
			})
		}
		expectFailure(t, 1, "the range begins behind the end of the file, which has 2000000 bytes",
			append(flags, "get", url, "-r", "2000000-", "--link", "lo", "-o", ownFile(t)+".copy")...)
	}
}

func TestWhatRequestsMayNotHold(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string, mode os.FileMode) {
		testkit.OK(t, os.WriteFile(name, []byte(text), mode))
	}
	write("own", "x", 0o600)
	write("open", "X: geheim\n", 0o644)
	write("fields", "A: b\ngeheim\n", 0o600)
	write("others", "X: geheim\n", 0o600)
	if os.Geteuid() == 0 {
		testkit.OK(t, os.Chown("others", 12345, 12345))
	}
	tests := []struct{ flags, want string }{
		{"-H|X: geheim\r\nY: 1", "--header: X holds a line break"}, {"-H|X: geheim\nY: 1", "--header: X holds a line break"},
		{"-H|X geheim", "--header: allowed is NAME: VALUE"}, {"-H|ge heim: 1", "--header: allowed is NAME: VALUE"},
		{"-H|Range: bytes=0-1", "--header: Range is what --range is for"}, {"-H|if-range: geheim", "--header: If-Range is set by multilink itself"},
		{"-H|Host: a/b", "--header: Host is no host name"}, {"-H|@fields", "--header: fields, line 2: allowed is NAME: VALUE"},
		{"-H|@open", "--header: open is not used, because others may read or change it (mode 0644): chmod 600 it"}, {"-A|geheim\nX: 1", "--user-agent: it holds a line break"},
		{"-H|@none", "--header: open none: no such file"},
	}
	if os.Geteuid() == 0 {
		tests = append(tests, struct{ flags, want string }{"-H|@others", "--header: others is not used, because it belongs to another user (12345)"})
	}
	for _, test := range tests {
		said := append(strings.Split(test.flags, "|"), "--link", "lo", "--give-up", "1s")
		for _, command := range [][]string{{"get", "https://h.test/f"}, {"put", "own", "https://h.test/f"}, {"probe", "--server", "https://h.test/f", "--run-dir", "r"}} {
			code, _, stderr := run(append(command, said...)...)
			if code != 2 || !strings.Contains(stderr, test.want) || strings.Contains(stderr, "geheim") || strings.Count(stderr, "\n") != 2 {
				t.Errorf("%s %q: exit code %d, stderr %q, want %s", command[0], test.flags, code, stderr, test.want)
			}
		}
	}
}

func TestProxiesOfTheEnvironmentAreSaidToBeIgnored(t *testing.T) {
	t.Setenv("https_proxy", "http://user:geheim@proxy.test:3128")
	t.Setenv("no_proxy", "direct.test")
	own := ownFile(t)
	for host, want := range map[string]int{"h.test": 1, "direct.test": 0} {
		for _, command := range [][]string{{"get", "https://" + host + "/f", "-o", own + ".copy"}, {"put", own, "https://" + host + "/f"}} {
			_, _, stderr := run(append(command, "--link", "lo", "--dns", "127.0.0.1:1", "--give-up", "1s")...)
			if strings.Count(stderr, "https_proxy is not used: every link connects to the server itself") != want || strings.Contains(stderr, "geheim") {
				t.Errorf("%s %s: %q", command[0], host, stderr)
			}
		}
	}
}
