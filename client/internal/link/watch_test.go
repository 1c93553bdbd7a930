package link

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

const wireless = `Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
 wlan0: 0000   54.  -56.  -256        0      0      0      0      0        0
 wlan1: 0000   70   -40   -256        0      0      0      0      0        0
`

func TestParseWireless(t *testing.T) {
	got, err := parseWireless(strings.NewReader(wireless))
	if want := map[string]float64{"wlan0": -56, "wlan1": -40}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, line := range []string{"wlan0 0000 54. -56.", "wlan0: 0000 54.", "wlan0: 0000 54. high.", "wlan0: 0 0 NaN"} {
		if _, err := parseWireless(strings.NewReader("\n\n" + line)); err == nil || !strings.HasPrefix(err.Error(), "line 3: ") {
			t.Errorf("%q: the error is %v", line, err)
		}
	}
}

func FuzzParseWireless(f *testing.F) {
	f.Add(wireless)
	f.Fuzz(func(t *testing.T, text string) {
		levels, err := parseWireless(strings.NewReader(text))
		for name, level := range levels {
			testkit.Holds(t, err != nil || level == level, name, level)
		}
	})
}

// A signal that is much better is reported.
func TestBetterSignalIsReported(t *testing.T) {
	name := filepath.Join(t.TempDir(), "wireless")
	level := func(dBm string) {
		testkit.OK(t, os.WriteFile(name+".new", []byte(strings.ReplaceAll(wireless, "-56.", dBm)), 0o600))
		testkit.OK(t, os.Rename(name+".new", name))
	}
	level("-80.")
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan Change, 9)
	var running sync.WaitGroup
	running.Go(func() {
		Watcher{Device: "wlan0", WirelessFile: name}.Watch(ctx, func(c Change) {
			select {
			case changes <- c:
			default:
			}
		})
	})
	// Whenever the checks happen, one at -60 dBm follows one at -80 dBm.
	running.Go(func() {
		for ctx.Err() == nil {
			for _, dBm := range []string{"-60.", "-80."} {
				level(dBm)
				select {
				case <-ctx.Done():
				case <-time.After(pollInterval * 3 / 2):
				}
			}
		}
	})
	testkit.Same(t, <-changes, Better)
	cancel()
	running.Wait()
}

func TestStateOfLoopback(t *testing.T) {
	if s := stateOf("lo"); !s.running || len(s.ways) == 0 {
		t.Errorf("lo is %+v", s)
	}
	if s := stateOf("nonesuch7"); s.running || s.ways != nil {
		t.Errorf("a device that does not exist is %+v", s)
	}
}
