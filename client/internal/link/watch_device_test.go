package link

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// All changes of a device are reported, also those that only rtnetlink announces.
func TestDeviceIsWatched(t *testing.T) {
	if testkit.Again(t) {
		return
	}
	ip := func(words string) { testkit.IP(t, words) }
	ip("link set lo up")
	changes := make(chan Change, 99)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Watcher{Device: "lo", WirelessFile: "nonesuch"}.Watch(ctx, func(c Change) { changes <- c })
	}()
	defer func() { cancel(); <-ended }()
	// The watcher cannot know of changes before its first check.
	for number, checked := 1, false; !checked; number++ {
		ip(fmt.Sprintf("address add 10.9.1.%d/32 dev lo", number))
		select {
		case <-changes:
			checked = true
		case <-time.After(pollInterval):
		}
	}
	last := Up
	for _, step := range []struct {
		words string
		want  Change
	}{
		{"address add 10.9.0.1/24 dev lo", Up},
		{"route add 10.8.0.0/24 dev lo", Up},
		{"link set lo down", Down},
		{"link set lo up", Up},
	} {
		ip(step.words)
		patience := time.After(time.Minute)
		for reported := false; !reported; {
			select {
			case got := <-changes:
				reported = got == step.want
				if !reported && got != last { // A change may be reported late, and twice.
					t.Errorf("ip %s: %v is reported, want %v", step.words, got, step.want)
				}
			case <-patience:
				t.Fatalf("ip %s: nothing is reported", step.words)
			}
		}
		last = step.want
		// An address brings a route.
		for quiet := false; !quiet; {
			select {
			case <-changes:
			case <-time.After(pollInterval / 2):
				quiet = true
			}
		}
	}
}
