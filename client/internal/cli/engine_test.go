package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Rescue is told what happens to the links' devices; without it nobody asks.
func TestLinksAreWatchedForRescue(t *testing.T) {
	for arguments, want := range map[string]bool{"--rescue": true, "--no-rescue": false} {
		f, flags := engineFlags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(flags)
		if err := flags.Parse([]string{"--link", "lo", arguments}); err != nil {
			t.Fatal(err)
		}
		o, _, err := f.options(flags)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Links[0].Watch != nil; got != want {
			t.Errorf("%s: watched is %v", arguments, got)
		}
	}
}

func TestKeysAreLoggedWhereTheEnvironmentWantsThem(t *testing.T) {
	url, flags := serve(t, http.HandlerFunc(content))
	keys := filepath.Join(t.TempDir(), "keys")
	get := append(flags, "get", url, "--link", "lo", "--quiet", "-o", filepath.Join(t.TempDir(), "copy"))
	t.Setenv("SSLKEYLOGFILE", keys)
	if code, _, stderr := run(get...); code != 0 {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	text, err := os.ReadFile(keys)
	if err != nil || !strings.Contains(string(text), "SERVER_TRAFFIC_SECRET_0 ") {
		t.Errorf("%q (%v) decrypts nothing", text, err)
	}
	if status, err := os.Stat(keys); err != nil || status.Mode().Perm() != 0o600 {
		t.Errorf("the keys can be read by others: %v (%v)", status.Mode(), err)
	}
	t.Setenv("SSLKEYLOGFILE", t.TempDir())
	if code, _, stderr := run(get...); code == 0 || !strings.Contains(stderr, "SSLKEYLOGFILE: ") {
		t.Errorf("a directory for keys: exit code %d, stderr %q", code, stderr)
	}
}
