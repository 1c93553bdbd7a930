package cli

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/testkit"
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
				if code != 0 {
					t.Errorf("the proxy ends with exit code %d, stderr %q", code, stderr.String())
				}
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
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(words, " "), err, stderr.Bytes())
	}
	return out
}

func TestProgramsUseTheProxy(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	t.Chdir(t.TempDir())
	proxy := startProxy(t, append(flags, "--link", "wifi=lo", "--link", "lte=lo", "--metrics", "unix:metrics", "--buffer", "2MiB")...)
	gateway := "http://" + proxy + "/" + url

	for name, words := range map[string][]string{
		"curl":           {"curl", "-sSf", gateway},
		"wget":           {"wget", "-q", "-O", "-", gateway},
		"curl's CONNECT": {"curl", "-sSf", "--proxy", "http://" + proxy, "--cacert", flags[1], url},
		"wget's CONNECT": {"wget", "-q", "-O", "-", "-e", "https_proxy=http://" + proxy, "--ca-certificate=" + flags[1], url},
	} {
		t.Run(name, func(t *testing.T) {
			if got := program(t, words...); !bytes.Equal(got, file) {
				t.Errorf("%d bytes, want the file", len(got))
			}
		})
	}
	t.Run("a range", func(t *testing.T) {
		if got := program(t, "curl", "-sSf", "-r", "1000000-3999999", gateway); !bytes.Equal(got, file[1_000_000:4_000_000]) {
			t.Errorf("%d bytes, want 3000000", len(got))
		}
	})
	t.Run("going on with a file", func(t *testing.T) {
		for _, words := range [][]string{{"curl", "-sSf", "-C", "-", "-o", "copy", gateway}, {"wget", "-q", "-c", "-O", "copy", gateway}} {
			if err := os.WriteFile("copy", file[:2_500_000], 0o600); err != nil {
				t.Fatal(err)
			}
			program(t, words...)
			if got, err := os.ReadFile("copy"); err != nil || !bytes.Equal(got, file) {
				t.Errorf("%s: %d bytes, %v", words[0], len(got), err)
			}
		}
	})
	text := scrape(t, "metrics")
	if !strings.Contains(text, `multilink_request_size_bytes_count{algorithm="adaptive",link="wifi"`) || strings.Contains(text, "127.0.0.1") {
		t.Errorf("the metrics are\n%s", text)
	}
}

// Programs that follow redirects see one host, the gateway.
func TestProgramsKeepCredentialsToTheirSite(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	note := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got[r.Host+r.URL.Path] = r.Header.Get("Authorization")
	}
	other := httptest.NewServer(http.HandlerFunc(note))
	t.Cleanup(other.Close)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(w, r)
		switch {
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/away":
			http.Redirect(w, r, other.URL+"/there", http.StatusFound)
		case r.URL.Path == "/within":
			http.Redirect(w, r, "/here", http.StatusFound)
		}
	}))
	t.Cleanup(site.Close)
	gateway := "http://" + startProxy(t, "--link", "lo") + "/"
	for name, words := range map[string][]string{
		"curl":           {"curl", "-sSfL", "-u", "user:pw"},
		"curl --anyauth": {"curl", "-sSfL", "--anyauth", "-u", "user:pw"},
		"wget":           {"wget", "-q", "-O", "-", "--user=user", "--password=pw"},
	} {
		t.Run(name, func(t *testing.T) {
			mu.Lock()
			clear(got)
			mu.Unlock()
			program(t, append(words, gateway+site.URL+"/away")...)
			program(t, append(words, gateway+site.URL+"/within")...)
			const basic = "Basic dXNlcjpwdw=="
			at := strings.TrimPrefix(site.URL, "http://")
			mu.Lock()
			defer mu.Unlock()
			theirs, came := got[strings.TrimPrefix(other.URL, "http://")+"/there"]
			if got[at+"/away"] != basic || got[at+"/here"] != basic || !came || theirs != "" {
				t.Errorf("the sites got %v", got)
			}
		})
	}
}

// NTLM of curl works through the proxy, for each client separately.
func TestCurlProvesWhoItIsByNTLM(t *testing.T) {
	// Message 2 (MS-NLMP 2.2.1.2) without names.
	challenge := make([]byte, 56)
	copy(challenge, "NTLMSSP\x00\x02")
	copy(challenge[20:], "\x01\x82\x08\x00") // Unicode, NTLM, extended session security.
	copy(challenge[24:], "12345678")
	challenge[16], challenge[44] = 56, 56 // The offsets of the names.
	var mu sync.Mutex
	messages := map[string]byte{} // The last message by connection.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "NTLM ")
		if message, err := base64.StdEncoding.DecodeString(text); err == nil && len(message) > 8 && message[8] > messages[r.RemoteAddr] {
			messages[r.RemoteAddr] = message[8]
		}
		switch messages[r.RemoteAddr] {
		case 3:
			fmt.Fprintln(w, "for you alone")
			return
		case 1:
			w.Header().Set("WWW-Authenticate", "NTLM "+base64.StdEncoding.EncodeToString(challenge))
		default:
			w.Header().Set("WWW-Authenticate", "NTLM")
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	if !bytes.Contains(program(t, "curl", "--version"), []byte("NTLM")) {
		t.Skip("curl is without NTLM")
	}
	curl := []string{"curl", "-sS", "--proxy", "http://" + startProxy(t, "--link", "lo"), "-w", "%{http_code}\n", server.URL + "/f"}
	// Two requests of one command use one connection.
	if got := program(t, append(curl, "--ntlm", "-u", "user:pw", server.URL+"/g")...); string(got) != strings.Repeat("for you alone\n200\n", 2) {
		t.Errorf("curl with a name gets %q", got)
	}
	if got := program(t, curl...); string(got) != "401\n" {
		t.Errorf("curl without a name gets %q", got)
	}
}

// A player first reads a film's index at its end, and then jumps back.
func TestAPlayerUsesTheGateway(t *testing.T) {
	t.Chdir(t.TempDir())
	program(t, "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x480:rate=25:duration=8", "-c:v", "mpeg4", "-b:v", "6M", "film.mp4")
	film, err := os.ReadFile("film.mp4")
	if err != nil {
		t.Fatal(err)
	}
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"film"`)
		http.ServeContent(w, r, "film.mp4", time.Time{}, bytes.NewReader(film))
	}))
	proxy := startProxy(t, append(flags, "--link", "wifi=lo", "--link", "lte=lo")...)
	decode := func(from string) string {
		return string(program(t, "ffmpeg", "-v", "error", "-i", from, "-f", "framemd5", "-"))
	}
	if want, got := decode("film.mp4"), decode("http://"+proxy+"/"+url); len(want) < 1000 || got != want {
		t.Errorf("the frames differ from those of the file:\n%.500s", got)
	}
	seek := func(from string) string {
		return string(program(t, "ffmpeg", "-v", "error", "-ss", "6", "-i", from, "-frames:v", "5", "-f", "framemd5", "-"))
	}
	if want, got := seek("film.mp4"), seek("http://"+proxy+"/"+url); got != want {
		t.Errorf("the frames after a jump differ:\n%s", got)
	}
	t.Run("mpv", func(t *testing.T) {
		play := func(from, directory string) (pictures []string) {
			program(t, "mpv", "--no-config", "--really-quiet", "--ao=null", "--untimed", "--start=6", "--frames=5",
				"--vo=image", "--vo-image-format=png", "--vo-image-outdir="+directory, from)
			names, _ := filepath.Glob(filepath.Join(directory, "*.png"))
			for _, name := range names {
				picture, err := os.ReadFile(name)
				if err != nil {
					t.Error(err)
				}
				pictures = append(pictures, string(picture))
			}
			return pictures
		}
		want, got := play("film.mp4", "want"), play("http://"+proxy+"/"+url, "got")
		if len(want) < 5 || !slices.Equal(got, want) {
			t.Errorf("mpv shows %d pictures, not the %d of the file", len(got), len(want))
		}
	})
}

func TestWrongUseOfTheProxy(t *testing.T) {
	for line, want := range map[string]string{
		"--listen here":                         "--listen here: allowed is HOST:PORT",
		"--listen 0.0.0.0:0":                    "--listen 0.0.0.0:0: nobody else than this machine may use the proxy",
		"--listen :8080":                        "--listen :8080: nobody else",
		"--listen 127.0.0.1:0 --allow everyone": "--allow everyone: allowed is ADDRESS/BITS",
		"--streams 0":                           "--streams 0: allowed are numbers from 1",
		"--buffer 3kB":                          "--buffer 3kB: allowed are sizes from 1MiB",
		"--cap lo=1GB/month":                    `"1GB/month" is not a size`,
		"http://example.org/":                   "proxy takes 0 arguments",
	} {
		code, _, stderr := run(strings.Fields("proxy --link lo " + line)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("proxy %s: exit code %d, stderr %q, want %q", line, code, stderr, want)
		}
	}
}
