package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of a release, set by
// -ldflags "-X github.com/linklab/linklab/client/internal/cli.release=VERSION".
var release string

// version returns the version of the release, or of the module, or "(devel)".
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	return info.Main.Version
}

func newVersion() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  multilink version
  multilink version --json`,
		Args: exactly(),
		RunE: func(command *cobra.Command, _ []string) error {
			out := command.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(map[string]string{"version": version(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(out, "multilink %s (%s)\n", version(), runtime.Version())
			return err
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return command
}
