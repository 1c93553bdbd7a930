// Command multilink downloads over several links at once.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/linklab/linklab/client/internal/cli"
)

func main() {
	// One processor is enough for several gigabits per second. With more, the
	// runtime spreads the work: threads wake each other for every batch of
	// data, which costs battery and, in a User Mode Linux guest, speed, and
	// makes the order of events less repeatable.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	// The live heap is a few buffers: garbage may be less than the usual as
	// much again, at no measurable cost.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40)
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
