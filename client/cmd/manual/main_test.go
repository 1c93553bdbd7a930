package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/cli"
)

func TestEveryCommandHasAPageWithItsFlags(t *testing.T) {
	directory := t.TempDir()
	if err := write(directory, "1.2.3"); err != nil {
		t.Fatal(err)
	}
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
		if !strings.Contains(page, command.Short) {
			t.Errorf("%s does not say %q", name, command.Short)
		}
		command.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, "--"+f.Name) {
				t.Errorf("%s lacks --%s", name, f.Name)
			}
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
		if err := write(directory, "1.2.3"); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(directory, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			pages[filepath.Base(name)] = string(text)
		}
		return pages
	}
	first, second := read(), read()
	for name, page := range first {
		if second[name] != page {
			t.Errorf("%s differs", name)
		}
		if !strings.Contains(page, "Nov 2023") {
			t.Errorf("%s is not of SOURCE_DATE_EPOCH", name)
		}
	}
}
