package cli

import (
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
