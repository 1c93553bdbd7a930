package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/cli"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestEveryCommandHasAPageWithItsFlags(t *testing.T) {
	directory := t.TempDir()
	testkit.OK(t, write(directory, "1.2.3"))
	pages := 0
	var check func(*cobra.Command)
	check = func(command *cobra.Command) {
		name := strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		page := strings.ReplaceAll(string(text), `\-`, "-")
		testkit.Holds(t, strings.Contains(page, command.Short), name, command.Short)
		command.Flags().VisitAll(func(f *pflag.Flag) {
			testkit.Holds(t, f.Hidden || strings.Contains(page, "--"+f.Name), name, f.Name)
		})
		for _, sub := range command.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	check(cli.Root())
	if written, err := os.ReadDir(directory); err != nil || len(written) != pages || pages < 15 {
		t.Errorf("%d pages of %d commands (%v)", len(written), pages, err)
	}
}

func TestPagesAreTheSameEachTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	read := func() map[string]string {
		directory, pages := t.TempDir(), map[string]string{}
		testkit.OK(t, write(directory, "1.2.3"))
		names, err := filepath.Glob(filepath.Join(directory, "*"))
		testkit.OK(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			testkit.OK(t, err)
			pages[filepath.Base(name)] = string(text)
		}
		return pages
	}
	first, second := read(), read()
	for name, page := range first {
		testkit.Same(t, second[name], page)
		testkit.Holds(t, strings.Contains(page, "Nov 2023"), name)
	}
}
