package cli

import (
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/schedule"
)

// completionRequests are the hidden commands with which a shell's script asks for completions.
// Their answers have tabs.
var completionRequests = []string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// flagValues returns functions that complete the values of flags, by flag. Values of other flags
// are completed as files.
func flagValues() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"link":            deviceNames,
		"device":          deviceNames,
		"algorithm":       cobra.FixedCompletions(algorithmNames(), cobra.ShellCompDirectiveNoFileComp),
		"objective":       oneOf(objectiveTime, objectiveEnergy),
		"min-tls-version": oneOf("1.2", "1.3"),
		"http3":           oneOf(http3Offered, http3DNS, http3No),
		"log-level":       oneOf("debug", "info", "warn", "error"),
		"log-format":      oneOf("text", "json"),
		"run-dir":         directories,
	}
}

type shellScript struct{ name, about, examples string }

// shellScripts says where scripts go. multilink does not run where other shells are used.
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

// asksForCompletion reports whether a command line may ask for completion: it begins with no
// other command. Downloads skip completion, and this function allocates nothing: allocations at
// the start can change results in virtual time by millionths.
func asksForCompletion(arguments []string) bool {
	return len(arguments) == 0 || !strings.Contains(commands, arguments[0])
}

// addCompletion adds the command that prints a shell's script to the output of root. It also adds
// the completions of all commands.
func addCompletion(root *cobra.Command) {
	root.CompletionOptions.DisableDefaultCmd = false
	root.InitDefaultCompletionCmd()
	command, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has just added the command.
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

// complete adds completions of flags and arguments to a command and its subcommands.
func complete(command *cobra.Command) {
	for name, values := range flagValues() {
		if command.Flags().Lookup(name) != nil || command.PersistentFlags().Lookup(name) != nil {
			if err := command.RegisterFlagCompletionFunc(name, values); err != nil {
				panic(err) // The flag exists and is completed once.
			}
		}
	}
	if command.Name() != "put" && command.ValidArgsFunction == nil {
		command.ValidArgsFunction = cobra.NoFileCompletions // For URLs.
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

// algorithmNames returns the values of --algorithm with descriptions.
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

// deviceNames returns this machine's network devices without loopback, after NAME= if that was
// typed.
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
