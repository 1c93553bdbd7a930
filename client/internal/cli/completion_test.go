package cli

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

// completions returns the completions of the last word, without descriptions.
func completions(t *testing.T, words ...string) (names []string) {
	t.Helper()
	code, stdout, _ := run(append([]string{"__complete"}, words...)...)
	testkit.Same(t, code, 0, words)
	for line := range strings.Lines(stdout) {
		name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(name, ":") && strings.HasPrefix(name, words[len(words)-1]) { // As shells do.
			names = append(names, name)
		}
	}
	return names
}

func TestCompletions(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"g", []string{"get"}},
		{"get https://example.org/f --algorithm alg1", []string{"alg1", "alg1-limited"}},
		{"probe --algorithm adaptive-", []string{"adaptive-energy"}},
		{"get --objective ", []string{"time", "energy"}},
		{"proxy --min-tls-version 1.", []string{"1.2", "1.3"}},
		{"get --log-level d", []string{"debug"}},
		{"get --tls-l", []string{"--tls-legacy"}},
		{"get ", nil},
		{"completion b", []string{"bash"}},
		{"workload pl", []string{"player"}},
	} {
		got := completions(t, strings.Split(test.line, " ")...)
		slices.Sort(got)
		slices.Sort(test.want)
		testkit.SameList(t, got, test.want, test.line)
	}
	if _, stdout, _ := run("__complete", "get", "--algorithm", "single"); !strings.Contains(stdout, "single\teverything, on one link\n") {
		t.Errorf("the offer does not say what it is: %q", stdout)
	}
}

func TestDevicesAreCompleted(t *testing.T) {
	devices, err := net.Interfaces()
	testkit.OK(t, err)
	plain, named := completions(t, "get", "--link", ""), completions(t, "get", "--link", "wifi=")
	for _, device := range devices {
		isLoopback := device.Flags&net.FlagLoopback != 0
		if slices.Contains(plain, device.Name) == isLoopback || slices.Contains(named, "wifi="+device.Name) == isLoopback {
			t.Errorf("%s (loopback: %v): %q and %q are offered", device.Name, isLoopback, plain, named)
		}
	}
}

// bashCompletion is the file of bash-completion that cobra's script needs.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

func TestBashCompletes(t *testing.T) {
	if _, err := os.Stat(bashCompletion); err != nil {
		t.Skip("bash-completion is not installed")
	}
	dir := t.TempDir()
	_, script, _ := run("completion", "bash")
	written(t, filepath.Join(dir, "script"), []byte(script))
	self, err := os.Executable()
	testkit.OK(t, err)
	testkit.OK(t, os.Symlink(self, filepath.Join(dir, "multilink")))
	for line, want := range map[string]string{
		"multilink prob":                   "probe",
		"multilink get --algorithm dynsu":  "dynsub",
		"multilink get --objective energy": "energy",
	} {
		bash := exec.CommandContext(t.Context(), "bash", "--norc", "-c", `
			source "$1"; source script; shift
			COMP_LINE=$*; COMP_POINT=${#COMP_LINE}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
			__start_multilink multilink "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
			printf '%s\n' "${COMPREPLY[@]}"`, "bash", bashCompletion)
		bash.Args = append(bash.Args, strings.Fields(line)...)
		bash.Dir = dir
		bash.Env = append(os.Environ(), programVariable+"=1", "PATH="+dir+":"+os.Getenv("PATH"))
		said, err := bash.Output()
		testkit.Holds(t, err == nil && strings.TrimSpace(string(said)) == want, line, said, err, want)
	}
}
