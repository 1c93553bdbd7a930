package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of help. pflag may make a line five characters longer.
const helpWidth = 80 - 5

// flagGroup is a section of a command's help.
type flagGroup struct {
	title string
	flags string
}

// flagGroups assigns the flags of get, put, probe and proxy to groups, in the order of
// help. Commands without --link have few flags, in one list.
var flagGroups = []flagGroup{
	{"Flags", "link listen server algorithm output range checksum resume allow streams buffer time ranged json quiet help"},
	{"Flags of algorithms", "bandwidth upper-limit padding plain first-request connections overlap segment window"},
	{"Flags for playback and energy", "playback-rate playback-buffer energy-model objective slowdown"},
	{"Flags for failing links", "give-up lowest-rate wireless-file"},
	{"Flags for name servers, addresses and TLS", "dns ipv4 ipv6 min-tls-version tls-legacy ca-file"},
	{"Flags for requests", "header user-agent max-redirs http3 http3-only"},
	{"Flags for measurements", "run-dir metrics metrics-label"},
}

// groupsOf returns the titles of the groups with a flag.
func groupsOf(name string) (titles []string) {
	for _, group := range flagGroups {
		if slices.Contains(strings.Fields(group.flags), name) {
			titles = append(titles, group.title)
		}
	}
	return titles
}

// groupedUsages returns the help of flags under the titles of their groups, in the order of the
// table. Flags without a group come last in the first group.
func groupedUsages(flags *pflag.FlagSet) string {
	parts := make([]*pflag.FlagSet, len(flagGroups))
	isGrouped := flags.Lookup("link") != nil
	for i, group := range flagGroups {
		parts[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
		parts[i].SortFlags = false
		for _, name := range strings.Fields(group.flags) {
			if f := flags.Lookup(name); f != nil && isGrouped {
				parts[i].AddFlag(f)
			}
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !isGrouped || len(groupsOf(f.Name)) == 0 {
			parts[0].AddFlag(f)
		}
	})
	var help []string
	for i, group := range flagGroups {
		if parts[i].HasAvailableFlags() {
			help = append(help, group.title+":\n"+strings.TrimRight(parts[i].FlagUsagesWrapped(helpWidth), "\n"))
		}
	}
	return strings.Join(help, "\n\n")
}

// groupFlags makes the help of all commands show flags in groups. It is a function and no
// template: text/template would make the linker keep every method of the program.
func groupFlags(root *cobra.Command) {
	root.SetUsageFunc(func(command *cobra.Command) error {
		_, err := fmt.Fprint(command.OutOrStderr(), usage(command))
		return err
	})
}

// usage returns how a command is called, with cobra's titles.
func usage(command *cobra.Command) string {
	help := "Usage:"
	if command.Runnable() {
		help += "\n  " + command.UseLine()
	}
	if command.HasAvailableSubCommands() {
		help += "\n  " + command.CommandPath() + " [command]"
	}
	if command.HasExample() {
		help += "\n\nExamples:\n" + wrapExamples(command.Example)
	}
	if command.HasAvailableSubCommands() {
		help += "\n\nAvailable Commands:"
		for _, sub := range command.Commands() {
			if sub.IsAvailableCommand() {
				help += fmt.Sprintf("\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if command.HasAvailableLocalFlags() {
		help += "\n\n" + groupedUsages(command.LocalFlags())
	}
	if command.HasAvailableInheritedFlags() {
		help += "\n\nGlobal Flags:\n" + strings.TrimRight(command.InheritedFlags().FlagUsagesWrapped(helpWidth), "\n")
	}
	if command.HasAvailableSubCommands() {
		help += fmt.Sprintf("\n\nUse \"%s [command] --help\" for a command's help.", command.CommandPath())
	}
	return help + "\n"
}

// wrapExamples wraps the lines of shell examples at the width of help. A wrapped line ends with a
// backslash, so that a shell reads it as one.
func wrapExamples(examples string) string {
	lines := strings.Split(examples, "\n")
	for i, line := range lines {
		var wrapped string
		for len(line) > helpWidth {
			at := strings.LastIndex(line[:helpWidth], " ")
			if flag := strings.LastIndex(line[:helpWidth], " --"); flag > helpWidth/2 {
				at = flag // Keep a flag and its value together.
			}
			if at <= len("    ") {
				break
			}
			wrapped += line[:at] + " \\\n"
			line = "    " + line[at+1:]
		}
		lines[i] = wrapped + line
	}
	return strings.Join(lines, "\n")
}
