package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

// onFullDisk runs multilink in a directory on a disk with this much room. An empty room means a
// full disk.
func onFullDisk(t *testing.T, directory, room string, arguments ...string) (stderr string) {
	t.Helper()
	script := `mount -t tmpfs -o size=` + room + `,nr_inodes=100 none "$0" || exit 99
test ` + room + ` != 4k || head -c 100000 /dev/zero >"$0/rest" 2>/dev/null
exec "$@"`
	words := append([]string{"-rm", "sh", "-c", script, directory, os.Args[0]}, arguments...)
	command := exec.CommandContext(t.Context(), "unshare", words...)
	command.Env = append(os.Environ(), programVariable+"=1")
	var text strings.Builder
	command.Stderr = &text
	err := command.Run()
	if command.ProcessState == nil || command.ProcessState.ExitCode() == 99 || strings.Contains(text.String(), "unshare:") {
		t.Skipf("no disk can be made here: %v %s", err, text.String())
	}
	testkit.Same(t, command.ProcessState.ExitCode(), 1)
	return text.String()
}

// Whatever is written to a full disk, the error names the file.
func TestAFullDiskNamesTheFile(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	lengthless, other := serve(t, servers["no size"])
	disk, own := t.TempDir(), ownFile(t)
	full := filepath.Join(t.TempDir(), "full")
	get := append(flags, "get", url, "--link", "lo", "--log-level", "error", "-o")
	for name, test := range map[string]struct {
		room      string
		arguments []string
		want      string
	}{
		"get":                  {"1m", append(get, disk+"/x"), "reserve 2000000 bytes for " + disk + "/x.part: no space left on device"},
		"get without a size":   {"1m", append(other, "get", lengthless, "--link", "lo", "--log-level", "error", "-o", disk+"/x"), "write " + disk + "/x.part: no space left on device"},
		"get, run directory":   {"4k", append(get, own+".copy", "--run-dir", disk), disk + "/client.json"},
		"put, run directory":   {"4k", append(flags, "put", own, url, "--link", "lo", "--run-dir", disk), disk + "/client.json"},
		"probe, run directory": {"4k", append(flags, "probe", "--server", url, "--link", "lo", "--time", "1s", "--run-dir", disk), disk + "/lo/client.json"},
		"into a device":        {"1m", append(get, full), "write " + full + ": no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "into a device" {
				if err := unix.Mknod(full, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 7))); err != nil {
					t.Skip("only root makes devices")
				}
			}
			stderr := onFullDisk(t, disk, test.room, test.arguments...)
			testkit.Holds(t, strings.Contains(stderr, test.want) && strings.Contains(stderr, "no space left on device"), stderr, test.want)
		})
	}
}
