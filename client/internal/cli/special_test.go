package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

// fifo makes a named pipe.
func fifo(t *testing.T, name string) string {
	t.Helper()
	testkit.OK(t, unix.Mkfifo(name, 0o600))
	return name
}

// null makes a device that discards everything, if this user may.
func null(t *testing.T, name string) string {
	t.Helper()
	if err := unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Skip("only root makes devices")
	}
	return name
}

// expectAlone fails unless the directory holds only these names.
func expectAlone(t *testing.T, directory string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	testkit.Holds(t, err == nil && fmt.Sprint(got) == fmt.Sprint(names), directory, got, err, names)
}

// servers serve the file in all ways that matter to a writer in order.
var servers = map[string]http.HandlerFunc{
	"ranges": content,
	"no ranges": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(file)))
		if r.Method != http.MethodHead {
			w.Write(file)
		}
	},
	"no size": func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			w.(http.Flusher).Flush()
			w.Write(file)
		}
	},
}

// HEAD says that the file is empty, because the server does not know its size.
func TestAFileThatHeadCallsEmpty(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "0")
			return
		}
		if r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.(http.Flusher).Flush()
		w.Write(file)
	}))
	code, stdout, stderr := run(append(flags, "get", url, "--link", "lo", "-o", "-")...)
	testkit.Holds(t, code == 0 && stdout == string(file), code, len(stdout), stderr)
}

func TestGetWritesInOrder(t *testing.T) {
	for name, handler := range servers {
		url, flags := serve(t, handler)
		get := append([]string{"get", url, "--link", "wifi=lo", "--link", "lte=lo", "--log-level", "error"}, flags...)
		sum := strings.TrimPrefix(checksum, "sha-256=")
		t.Run(name+", standard output", func(t *testing.T) {
			t.Chdir(t.TempDir())
			code, stdout, stderr := run(append(get, "-o", "-", "--checksum", checksum)...)
			testkit.Holds(t, code == 0 && stdout == string(file) && strings.Contains(stderr, "-: 2000000 bytes in "), code, len(stdout), stderr)
			code, stdout, stderr = run(append(get, "-o", "-", "--json")...)
			testkit.Holds(t, code == 0 && stdout == string(file) && strings.Contains(stderr, `"sha256":"`+sum), code, len(stdout), stderr)
			expectAlone(t, ".")
		})
		t.Run(name+", pipe", func(t *testing.T) {
			t.Chdir(t.TempDir())
			fifo(t, "pipe")
			read := make(chan []byte)
			go func() {
				from, _ := os.Open("pipe")
				defer from.Close()
				text, _ := io.ReadAll(from)
				read <- text
			}()
			code, stdout, stderr := run(append(get, "-o", "pipe")...)
			if got := <-read; code != 0 || !bytes.Equal(got, file) || !strings.Contains(stdout, sum) {
				t.Errorf("exit code %d, %d bytes, stdout %q, stderr %q", code, len(got), stdout, stderr)
			}
			expectAlone(t, ".", "pipe")
		})
		t.Run(name+", open file", func(t *testing.T) {
			t.Chdir(t.TempDir())
			open, err := os.Create("out")
			testkit.OK(t, err)
			defer open.Close()
			open.WriteString("before ")
			testkit.OK(t, os.Symlink(fmt.Sprintf("/proc/self/fd/%d", open.Fd()), "stdout"))
			code, _, stderr := run(append(get, "-o", "stdout")...)
			if text, _ := os.ReadFile("out"); code != 0 || string(text) != "before "+string(file) {
				t.Errorf("exit code %d, %d bytes, stderr %q", code, len(text), stderr)
			}
			expectAlone(t, ".", "out", "stdout")
		})
		t.Run(name+", device", func(t *testing.T) {
			t.Chdir(t.TempDir())
			null(t, "null")
			code, stdout, stderr := run(append(get, "-o", "null")...)
			if info, err := os.Lstat("null"); code != 0 || !strings.Contains(stdout, sum) || err != nil || info.Mode()&os.ModeCharDevice == 0 {
				t.Errorf("exit code %d, stdout %q, stderr %q; it is %v", code, stdout, stderr, info)
			}
			expectAlone(t, ".", "null")
		})
	}
}

// A wrong checksum is found after the output was written, and reported.
func TestAWrongChecksumOfWhatIsWrittenInOrder(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	code, stdout, stderr := run(append(flags, "get", url, "--link", "lo", "-o", "-", "--checksum", noChecksum)...)
	if code != 1 || stdout != string(file) || !strings.Contains(stderr, "; all of it is written to standard output already\n") {
		t.Errorf("exit code %d, %d bytes, stderr %q", code, len(stdout), stderr)
	}
}

// slowly serves most of a file, enough to choose a link, and then nothing.
func slowly(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", strconv.Itoa(3*len(file)))
	if r.Method != http.MethodHead {
		w.Write(bytes.Repeat(file, 3)[100_000:])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// When the reader goes, the download ends at once, as with SIGPIPE. This holds even if the server
// sends nothing more.
func TestAReaderGoes(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"ranges": content, "silent": slowly} {
		t.Run(name, func(t *testing.T) {
			url, flags := serve(t, handler)
			t.Chdir(t.TempDir())
			fifo(t, "pipe")
			go func() {
				from, _ := os.Open("pipe")
				io.CopyN(io.Discard, from, 10)
				from.Close()
			}()
			began := time.Now()
			code, _, stderr := run(append(flags, "get", url, "--link", "lo", "-o", "pipe", "--run-dir", "run", "--log-level", "error")...)
			if code != 141 || stderr != "multilink: pipe: its reader has gone\n" || time.Since(began) > 10*time.Second {
				t.Errorf("exit code %d after %v, stderr %q", code, time.Since(began), stderr)
			}
			expectAlone(t, ".", "pipe", "run")
			if text, err := os.ReadFile("run/client.json"); err != nil || !strings.Contains(string(text), `"outcome": "failed"`) {
				t.Errorf("client.json is %s (%v)", text, err)
			}
		})
	}
}

// The same holds for the pipes of a shell.
func TestStandardOutputIsAPipe(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	for _, name := range []string{"-", "/dev/stdout", "/dev/fd/1"} {
		get := asProcess(t, append(flags, "get", url, "--link", "lo", "--link", "lte=lo", "--log-level", "error", "-o", name)...)
		stdout, err := get.StdoutPipe()
		testkit.OK(t, err)
		testkit.OK(t, get.Start())
		text, err := io.ReadAll(stdout)
		if err := errors.Join(err, get.Wait()); err != nil || !bytes.Equal(text, file) {
			t.Errorf("%s: %d bytes (%v)", name, len(text), err)
		}
	}
	get := asProcess(t, append(flags, "get", url, "--link", "lo", "--log-level", "error", "-o", "-")...)
	var stderr strings.Builder
	get.Stderr = &stderr
	stdout, err := get.StdoutPipe()
	testkit.OK(t, err)
	testkit.OK(t, get.Start())
	io.CopyN(io.Discard, stdout, 10)
	stdout.Close()
	_ = get.Wait()
	if code := get.ProcessState.ExitCode(); code != 141 || stderr.String() != "multilink: standard output: its reader has gone\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}

// SIGTERM ends a program that waits for the other end of a pipe, at either end.
func TestSIGTERMEndsWhatWaits(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	t.Chdir(t.TempDir())
	none, slow := fifo(t, "none"), fifo(t, "slow")
	reader, err := os.OpenFile(slow, os.O_RDONLY|unix.O_NONBLOCK, 0)
	testkit.OK(t, err)
	defer reader.Close()
	for _, name := range []string{none, slow} {
		time.AfterFunc(300*time.Millisecond, func() { unix.Kill(os.Getpid(), unix.SIGTERM) })
		began := time.Now()
		code, _, stderr := run(append(flags, "get", url, "--link", "lo", "-o", name)...)
		if code != 128+int(syscall.SIGTERM) || !strings.Contains(stderr, "interrupted by SIGTERM") || time.Since(began) > 10*time.Second {
			t.Errorf("%s: exit code %d after %v, stderr %q", name, code, time.Since(began), stderr)
		}
	}
	expectAlone(t, ".", "none", "slow")
}

// A name that is no plain file is never replaced, and no call waits forever. Each case gives one
// clear error.
func TestWhatIsNoFileStays(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	for name, test := range map[string]struct {
		is        []string
		arguments []string
		want      string
	}{
		"put pipe":         {nil, []string{"put", "it", url, "--link", "lo"}, "it is a pipe: allowed is a plain file"},
		"put link to pipe": {nil, []string{"put", "link", url, "--link", "lo"}, "link is a pipe: allowed is a plain file"},
		"put directory":    {nil, []string{"put", ".", url, "--link", "lo"}, ". is a directory: allowed is a plain file"},
		"authorities":      {nil, []string{"get", url, "--link", "lo", "--ca-file", "it"}, "there is no certificate in it"},
		"energy model":     {nil, []string{"get", url, "--link", "wifi=lo", "--algorithm", "emptcp-http", "--energy-model", "it"}, "it: the file is empty"},
		"keys":             {nil, []string{"get", url, "--link", "lo"}, "SSLKEYLOGFILE: it is not used, because it is no regular file"},
		"part":             {[]string{"x.part"}, []string{"get", url, "--link", "lo", "-o", "x"}, "x.part is not used, because it is no regular file"},
		"events":           {[]string{"client.jsonl"}, []string{"get", url, "--link", "lo", "-o", "x", "--run-dir", "."}, "client.jsonl is not used, because it is no regular file"},
		"summary":          {[]string{"client.json"}, []string{"get", url, "--link", "lo", "-o", "x", "--run-dir", "."}, "client.json is a pipe, which is not replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("SSLKEYLOGFILE", "")
			if name == "keys" {
				t.Setenv("SSLKEYLOGFILE", "it")
			}
			os.Symlink("it", "link")
			pipes := append([]string{"it"}, test.is...)
			for _, pipe := range pipes {
				fifo(t, pipe)
			}
			arguments := test.arguments
			if name != "authorities" {
				arguments = append(arguments, flags...)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				code, _, stderr := run(arguments...)
				testkit.Holds(t, code != 0 && strings.Contains(stderr, test.want), code, stderr, test.want)
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("it waits for ever")
			}
			for _, pipe := range pipes {
				if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
					t.Errorf("%s is %v (%v)", pipe, info, err)
				}
			}
		})
	}
	for name, test := range map[string]func(name string) error{
		"socket":       func(name string) error { return unix.Mknod(name, unix.S_IFSOCK|0o600, 0) },
		"block device": func(name string) error { return unix.Mknod(name, unix.S_IFBLK|0o600, int(unix.Mkdev(42, 0))) },
		"directory":    func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		t.Run("get into "+name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := test("it"); errors.Is(err, unix.EPERM) {
				t.Skip("only root makes devices")
			}
			code, _, stderr := run(append(flags, "get", url, "--link", "lo", "-o", "it")...)
			testkit.Holds(t, code == 1 && strings.HasPrefix(stderr, "multilink: it is a "+name+": ") && strings.Count(stderr, "\n") == 1, code, stderr)
			expectAlone(t, ".", filepath.Base("it"))
		})
	}
}
