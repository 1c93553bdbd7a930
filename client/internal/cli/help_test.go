package cli

import (
	"strings"
	"testing"
)

func TestEveryCommandIsExplained(t *testing.T) {
	for _, command := range everyCommand()[0].Commands() {
		if !strings.Contains(allCommands, command.Name()) {
			t.Errorf("%s is not in the list of commands", command.Name())
		}
		code, stdout, stderr := run(command.Name(), "--help")
		for _, want := range []string{"Usage:\n  multilink " + command.Name(), "Examples:\n  multilink " + command.Name(), "Flags:"} {
			if code != 0 || stderr != "" || !strings.Contains(stdout, want) {
				t.Errorf("%s --help: exit code %d, stderr %q, %q is not in\n%s", command.Name(), code, stderr, want, stdout)
			}
		}
	}
}
