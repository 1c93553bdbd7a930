package cli

import (
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/schedule"
)

// completionRequests are the hidden commands by which a shell's script asks the
// program what may come next. Their answers have tabs.
var completionRequests = []string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// flagValues complete the values of flags, by their names. Values of other flags
// are completed as files.
func flagValues() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"link":            deviceNames,
		"device":          deviceNames,
		"algorithm":       cobra.FixedCompletions(algorithmNames(), cobra.ShellCompDirectiveNoFileComp),
		"objective":       oneOf(objectiveTime, objectiveEnergy),
		"min-tls-version": oneOf("1.2", "1.3"),
		"log-level":       oneOf("debug", "info", "warn", "error"),
		"log-format":      oneOf("text", "json"),
		"run-dir":         directories,
		"directory":       directories,
		"state-dir":       directories,
	}
}

type shellScript struct{ name, about, examples string }

// shellScripts says where scripts go. Other shells do not run where multilink does.
var shellScripts = []shellScript{
	{
		"bash",
		"Print the script for bash. It needs the package bash-completion.",
		`  source <(multilink completion bash)
  multilink completion bash > ~/.local/share/bash-completion/completions/multilink`,
	},
	{
		"zsh",
		"Print the script for zsh. Its directory must be in fpath before compinit runs.",
		`  multilink completion zsh > ~/.zfunc/_multilink`,
	},
	{
		"fish",
		"Print the script for fish.",
		`  multilink completion fish > ~/.config/fish/completions/multilink.fish`,
	},
}

// asksForCompletion says that a command line may be about completion: it begins with
// no other command. Downloads do without, and this allocates nothing: what their
// start allocates may move, by millionths, the figures of a run in virtual time.
func asksForCompletion(arguments []string) bool {
	return len(arguments) == 0 || !strings.Contains(commands, arguments[0])
}

// addCompletion adds the command that prints a shell's script to the output that
// root has, and what the script needs to know of all commands.
func addCompletion(root *cobra.Command) {
	root.CompletionOptions.DisableDefaultCmd = false
	root.InitDefaultCompletionCmd()
	command, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has just added it.
	}
	command.Short = "Print the script by which a shell completes command lines"
	command.Long = `Print the script by which a shell completes commands, flags, devices and
algorithms. The help of each shell says where its script goes.`
	command.Example = "  multilink completion bash --help"
	var shells []string
	for _, shell := range command.Commands() {
		at := slices.IndexFunc(shellScripts, func(s shellScript) bool { return s.name == shell.Name() })
		if at < 0 {
			command.RemoveCommand(shell)
			continue
		}
		shell.Short, shell.Long, shell.Example = "Print the script for "+shell.Name(), shellScripts[at].about, shellScripts[at].examples
		shell.Args = exactly()
		shells = append(shells, shell.Name())
	}
	command.Args = func(_ *cobra.Command, arguments []string) error {
		if len(arguments) > 0 {
			return usagef("there is no script for %q: allowed are %s", arguments[0], strings.Join(shells, ", "))
		}
		return nil
	}
	command.RunE = func(*cobra.Command, []string) error {
		return usagef("a shell is needed: %s", strings.Join(shells, ", "))
	}
	complete(root)
}

// complete has a command and its own ones complete what flags and arguments may be.
func complete(command *cobra.Command) {
	for name, values := range flagValues() {
		if command.Flags().Lookup(name) != nil || command.PersistentFlags().Lookup(name) != nil {
			if err := command.RegisterFlagCompletionFunc(name, values); err != nil {
				panic(err) // The flag is there, and completed once.
			}
		}
	}
	if command.Name() != "put" && command.ValidArgsFunction == nil {
		command.ValidArgsFunction = cobra.NoFileCompletions // URLs, and numbers of downloads.
	}
	for _, sub := range command.Commands() {
		complete(sub)
	}
}

func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// algorithmNames are what --algorithm takes, each with what it does.
func algorithmNames() (names []string) {
	for _, a := range schedule.Algorithms {
		about := strings.ReplaceAll(a.About, "`", "")
		names = append(names, cobra.CompletionWithDesc(a.Name, about))
		if a.Alias != "" {
			names = append(names, cobra.CompletionWithDesc(a.Alias, about))
		}
	}
	return names
}

// deviceNames are this machine's network devices but its loopback, after NAME= if
// that is typed already.
func deviceNames(_ *cobra.Command, _ []string, typed string) (names []string, _ cobra.ShellCompDirective) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	name := ""
	if at := strings.LastIndex(typed, "="); at >= 0 {
		name = typed[:at+1]
	}
	for _, device := range devices {
		isPlain := printable.Text(device.Name) == device.Name && !strings.ContainsAny(device.Name, "`$\"'\\;&|<>()")
		if device.Flags&net.FlagLoopback == 0 && isPlain && strings.HasPrefix(name+device.Name, typed) {
			names = append(names, name+device.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
