package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linklab/linklab/client/internal/schedule"
)

func newAlgorithms() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "algorithms",
		Short: "List what --algorithm takes",
		Long: `List the algorithms: how many bytes a link requests next, and the flags on
which that depends. r is a link's throughput, B its bandwidth, n the number of
links, BDP = B · round trip time.`,
		Example: `  multilink algorithms
  multilink algorithms --json`,
		Args: exactly(),
		RunE: func(command *cobra.Command, _ []string) error {
			out := command.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(schedule.Algorithms)
			}
			for _, a := range schedule.Algorithms {
				fmt.Fprintf(out, "%s\n  %s\n", a, strings.ReplaceAll(a.About, "`", ""))
				fmt.Fprintf(out, "  from: %s\n  for: %s\n", strings.Join(a.From, ", "), a.Wins)
				if a.Source != "" {
					fmt.Fprintf(out, "  source: %s\n", a.Source)
				}
				if len(a.Options) > 0 {
					fmt.Fprintf(out, "  flags: --%s\n", strings.Join(a.Options, " --"))
				}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return command
}
