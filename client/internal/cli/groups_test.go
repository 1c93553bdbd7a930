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

func TestHelpFitsATerminal(t *testing.T) {
	for _, command := range everyCommand() {
		arguments := append(strings.Fields(command.CommandPath())[1:], "--help")
		code, stdout, stderr := run(arguments...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, stderr %q", arguments, code, stderr)
		}
		for line := range strings.Lines(stdout) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: more than 80 columns: %s", arguments, line)
			}
		}
	}
}

// A flag that fails here needs a place in flagGroups.
func TestEveryFlagIsInOneGroup(t *testing.T) {
	there := map[string]bool{}
	for _, command := range everyCommand() {
		if command.Flags().Lookup("link") == nil {
			continue
		}
		command.InitDefaultHelpFlag()
		command.LocalFlags().VisitAll(func(f *pflag.Flag) {
			there[f.Name] = true
			if titles := groupsOf(f.Name); len(titles) != 1 {
				t.Errorf("%s --%s is in the groups %q: one is needed", command.Name(), f.Name, titles)
			}
		})
	}
	for _, group := range flagGroups {
		for _, name := range strings.Fields(group.flags) {
			if !there[name] {
				t.Errorf("%s names --%s, which no command has", group.title, name)
			}
		}
	}
}

func TestHelpShowsEveryFlagOnceInItsGroup(t *testing.T) {
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
			if !slices.Equal(shown, groupsOf(f.Name)) {
				t.Errorf("%s --help shows --%s under %q, not once under %q", command.Name(), f.Name, shown, groupsOf(f.Name))
			}
		})
	}
}

func TestFlagsOfACommandWithoutLinksAreOneList(t *testing.T) {
	_, stdout, _ := run("workload", "player", "--help")
	if strings.Count(stdout, "Flags:\n") != 2 || !strings.Contains(stdout, "\n\nGlobal Flags:\n") || !strings.Contains(stdout, "--segment size") {
		t.Error(stdout)
	}
}
