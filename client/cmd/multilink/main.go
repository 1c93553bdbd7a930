// Command multilink downloads over several links at once.
package main

import (
	"os"

	"github.com/linklab/linklab/client/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
