// Package cli is the command line of multilink.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/linklab/linklab/client/internal/output"
	"github.com/linklab/linklab/client/internal/printable"
)

// Exit codes. After a signal the code is 128 plus the signal's number, as in a shell. If nobody
// reads the output any more, the code is the same as after SIGPIPE.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, arguments ...any) error {
	return usageError{fmt.Errorf(format, arguments...)}
}

// Main runs the program and returns its exit code. SIGINT, SIGTERM and SIGHUP end a download cleanly.
func Main(arguments []string, stdout, stderr io.Writer) int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	shown, stderr := printable.NewWriter(stdout), printable.NewWriter(stderr)
	logs := &logging{}
	defer logs.close()
	root := newRoot(logs)
	root.SetArgs(arguments)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if asksForCompletion(arguments) {
		addCompletion(root) // It needs standard output unchanged: scripts have tabs.
	}
	if len(arguments) == 0 || !slices.Contains(completionRequests, arguments[0]) {
		root.SetOut(shown)
	}
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "multilink: %s\nTry 'multilink --help'.\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "multilink: %s\n", err)
	if interrupt := new(interruption); errors.As(context.Cause(ctx), interrupt) {
		return 128 + int(interrupt.signal)
	}
	if errors.Is(err, output.ErrNoReader) {
		return 128 + int(syscall.SIGPIPE)
	}
	return exitFailed
}

// interruption is the cause of a context that a signal has ended.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return "interrupted by " + signalNames[i.signal] }

// withSignals returns a context that SIGINT, SIGTERM or SIGHUP ends, with an error that names the
// signal. A second signal kills the process as usual. SIGHUP has no effect under nohup.
func withSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(interruption{s.(syscall.Signal)})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() { cancel(nil) }
}

var signalNames = map[os.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}

// commands lists the commands in errors.
const commands = "get, put, probe, proxy, workload, algorithms, version"

// allCommands also lists the command that addCompletion adds.
const allCommands = commands + ", completion"

func newRoot(logs *logging) *cobra.Command {
	root := &cobra.Command{
		Use:           "multilink",
		Short:         "Download over several links at once",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			_, err := logs.logger(command.ErrOrStderr())
			return err
		},
		RunE: func(*cobra.Command, []string) error {
			return usagef("a command is needed: %s", allCommands)
		},
	}
	logs.register(root.PersistentFlags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true // addCompletion adds it.
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.Args = func(_ *cobra.Command, arguments []string) error {
		if len(arguments) > 0 {
			return usagef("there is no command %q: allowed are %s", arguments[0], allCommands)
		}
		return nil
	}
	root.AddCommand(newGet(logs), newPut(), newProbe(logs), newProxy(logs), newWorkload(), newAlgorithms(), newVersion())
	groupFlags(root)
	return root
}

// Root returns the program with all of its commands, for code that documents them.
func Root() *cobra.Command {
	root := newRoot(&logging{})
	addCompletion(root)
	return root
}

// exactly requires one argument for each of names, which describe them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if len(arguments) != len(names) {
			return usagef("%s takes %d arguments (%s), not %d", command.Name(), len(names), strings.Join(names, " "), len(arguments))
		}
		return nil
	}
}

// printJSON prints a value in one line.
func printJSON(w io.Writer, value any) error {
	return json.NewEncoder(w).Encode(value)
}
