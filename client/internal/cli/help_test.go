package cli

import (
	"strings"
	"testing"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestEveryCommandIsExplained(t *testing.T) {
	for _, command := range everyCommand()[0].Commands() {
		testkit.Holds(t, strings.Contains(allCommands, command.Name()), command.Name())
		code, stdout, stderr := run(command.Name(), "--help")
		for _, want := range []string{"Usage:\n  multilink " + command.Name(), "Examples:\n  multilink " + command.Name(), "Flags:"} {
			testkit.Holds(t, code == 0 && stderr == "" && strings.Contains(stdout, want), command.Name(), code, stderr, want, stdout)
		}
	}
}
