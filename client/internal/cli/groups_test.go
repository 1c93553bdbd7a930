package cli

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/tests/testkit"
)

// everyCommand returns the program, its commands and their subcommands.
func everyCommand() []*cobra.Command {
	root := Root()
	root.SetOut(io.Discard)
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	return slices.DeleteFunc(all, func(c *cobra.Command) bool { return c.Hidden })
}

// Every command is explained, in lines that fit a terminal.
func TestHelp(t *testing.T) {
	for _, command := range everyCommand() {
		arguments := append(strings.Fields(command.CommandPath())[1:], "--help")
		code, stdout, stderr := run(arguments...)
		testkit.Holds(t, code == 0 && stderr == "" && strings.Contains(stdout, "Flags:"), arguments, code, stderr, stdout)
		if command.Parent() == everyCommand()[0] {
			testkit.Holds(t, strings.Contains(allCommands, command.Name()) && strings.Contains(stdout, "Examples:\n  multilink "+command.Name()), arguments, stdout)
		}
		for line := range strings.Lines(stdout) {
			testkit.Holds(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) <= 80, arguments, line)
		}
	}
}

// A flag that fails here needs a place in flagGroups.
func TestHelpShowsEveryFlagOnceInItsGroup(t *testing.T) {
	there := map[string]bool{}
	for _, command := range everyCommand() {
		if command.Flags().Lookup("link") == nil {
			continue
		}
		_, stdout, _ := run(command.Name(), "--help")
		sections := strings.Split(stdout, "\n\n")
		command.InitDefaultHelpFlag()
		command.LocalFlags().VisitAll(func(f *pflag.Flag) {
			line := regexp.MustCompile(`(?m)^  (-., |    )--` + f.Name + `( |$)`)
			var shown []string
			for _, section := range sections {
				for range line.FindAllString(section, -1) {
					title, _, _ := strings.Cut(section, ":\n")
					shown = append(shown, title)
				}
			}
			there[f.Name] = true
			testkit.Same(t, len(groupsOf(f.Name)), 1, command.Name(), f.Name)
			testkit.SameList(t, shown, groupsOf(f.Name), command.Name(), f.Name)
		})
	}
	for _, group := range flagGroups {
		for _, name := range strings.Fields(group.flags) {
			testkit.Holds(t, there[name], group.title, name)
		}
	}
}

func TestFlagsOfACommandWithoutLinksAreOneList(t *testing.T) {
	_, stdout, _ := run("workload", "player", "--help")
	if strings.Count(stdout, "Flags:\n") != 2 || !strings.Contains(stdout, "\n\nGlobal Flags:\n") || !strings.Contains(stdout, "--segment size") {
		t.Error(stdout)
	}
}
