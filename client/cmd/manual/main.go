// Command manual writes multilink's man pages, one for each command, into a directory.
//
// It is a program of its own, so that multilink contains none of what makes them.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/linklab/linklab/client/internal/cli"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: manual DIRECTORY VERSION")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// write writes the pages of a version. Their date is SOURCE_DATE_EPOCH, where that is set.
func write(directory, version string) error {
	root := cli.Root()
	root.DisableAutoGenTag = true // It has the date of today.
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "multilink " + version, Manual: "multilink"}, directory)
}
