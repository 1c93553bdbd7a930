package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/daemon"
	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/metrics"
	"github.com/linklab/linklab/client/internal/output"
	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/quota"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/unixsocket"
)

// socketVariable is the environment variable with the daemon's socket, the default of --socket.
const socketVariable = "MULTILINK_SOCKET"

const socketUsage = "UNIX socket of the daemon (default: " + socketVariable + ", or multilink.sock in XDG_RUNTIME_DIR)"

// socketPath returns the socket of --socket or its default.
func socketPath(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if path := os.Getenv(socketVariable); path != "" {
		return path, nil
	}
	if directory := os.Getenv("XDG_RUNTIME_DIR"); directory != "" {
		return filepath.Join(directory, "multilink.sock"), nil
	}
	return "", usagef("--socket is needed: neither %s nor XDG_RUNTIME_DIR is set", socketVariable)
}

// serveFlags are the flags of "multilink serve" as the user wrote them.
type serveFlags struct {
	engineFlags
	requestFlags
	metrics   metricsFlags
	config    string
	socket    string
	directory string
	stateDir  string
	parallel  int
}

func newServe(logs *logging) *cobra.Command {
	f := &serveFlags{engineFlags: engineFlags{resident: true, capPeriod: quota.Month}}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon, which downloads what 'multilink add' gives it",
		Long: `Run the daemon until SIGINT or SIGTERM. It takes URLs through a UNIX socket
that only its user can open, and downloads them in their order. The queue and
what each link has carried outlive it: started again, it goes on.

The configuration file is YAML. Its keys are the long names of the flags below,
with a list for those that are repeatable; a flag on the command line replaces
the setting.`,
		Example: `  multilink serve --config multilink.yaml --socket multilink.sock
  multilink serve --link wifi=wlan0 --link lte=rmnet0 --cap lte=5GB --directory Downloads

  # multilink.yaml
  link: [wifi=wlan0, lte=rmnet0]
  cap: [lte=5GB/month]
  rate-limit: [lte=20Mbit/s]
  directory: /home/me/Downloads
  parallel: 2`,
		Args: exactly(),
		RunE: func(command *cobra.Command, _ []string) error {
			return runServe(command, f, logs)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config, "config", "", "YAML file with settings")
	flags.StringVar(&f.socket, "socket", "", socketUsage)
	flags.StringVar(&f.directory, "directory", ".", "where the files go")
	flags.StringVar(&f.stateDir, "state-dir", "", "where the queue is kept (default: multilink in XDG_STATE_HOME or ~/.local/state)")
	flags.IntVar(&f.parallel, "parallel", 2, "downloads at a time")
	f.engineFlags.register(flags)
	f.requestFlags.register(flags)
	f.registerRedirects(flags)
	f.metrics.register(flags)
	return command
}

func runServe(command *cobra.Command, f *serveFlags, logs *logging) error {
	ctx := command.Context()
	settings, err := readConfig(f.config, command.Flags())
	if err != nil {
		return usageError{err}
	}
	log, err := logs.logger(command.ErrOrStderr())
	if err != nil {
		return err
	}
	options, quotas, err := f.engineFlags.options(command.Flags())
	if err == nil {
		err = f.check()
	}
	var request *request
	if err == nil {
		request, err = f.read()
	}
	if err == nil {
		err = request.checkForAll()
	}
	if err != nil {
		return usageError{settings.locate(err)}
	}
	options.Log, options.Pool = log, download.NewPool()
	defer options.Pool.Close()
	socket, err := socketPath(f.socket)
	if err != nil {
		return err
	}
	stateDir, err := f.statePath()
	if err != nil {
		return err
	}
	exported, stopMetrics, err := f.metrics.start(f.algorithm, options.Links)
	if err != nil {
		return settings.locate(err)
	}
	defer stopMetrics()

	if env := httpproxy.FromEnvironment(); env.HTTPSProxy != "" || env.HTTPProxy != "" {
		log.Warn("the proxies of the environment are not used: every link connects to the servers itself")
	}
	queue, err := daemon.Open(daemon.Options{
		StateDirectory: stateDir,
		Directory:      f.directory,
		Parallel:       f.parallel,
		Prepare:        preparer(options, request, f.directory, exported),
		Links:          quotas,
		Log:            log,
	})
	if err != nil {
		return err
	}
	defer queue.Close()
	listener, err := unixsocket.Listen(socket)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop()
		served <- daemon.Serve(ctx, listener, daemon.Handler(queue))
	}()
	log.Info("the daemon listens", "socket", socket)
	return errors.Join(queue.Run(ctx), <-served, request.save())
}

func (f *serveFlags) check() error {
	if f.parallel < 1 {
		return invalid("parallel", f.parallel, "allowed are numbers from 1")
	}
	info, err := os.Stat(f.directory)
	switch {
	case err != nil:
		return invalid("directory", f.directory, "%w", err)
	case !info.IsDir():
		return invalid("directory", f.directory, "it is no directory")
	}
	return nil
}

func (f *serveFlags) statePath() (string, error) {
	if f.stateDir != "" {
		return f.stateDir, nil
	}
	if directory := os.Getenv("XDG_STATE_HOME"); directory != "" {
		return filepath.Join(directory, "multilink"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usagef("--state-dir is needed: %v", err)
	}
	return filepath.Join(home, ".local", "state", "multilink"), nil
}

// preparer returns a function that turns requests into downloads with these options.
func preparer(options download.Options, request *request, directory string, exported *metrics.Metrics) func(*daemon.Request) (daemon.Run, error) {
	return func(r *daemon.Request) (daemon.Run, error) {
		o := options
		checksum, err := parseChecksum(r.Checksum)
		if err != nil {
			return nil, err
		}
		given, err := parseURL(r.URL, checksum)
		if err != nil {
			return nil, err
		}
		var authorization string
		if o.URL, authorization = credentials.Cut(given); authorization != "" {
			return nil, errors.New("the URL holds credentials, which the daemon does not take, because its queue is kept on the disk: use multilink get")
		}
		if err := request.into(&o, o.URL, ""); err != nil {
			return nil, err
		}
		if r.Output, err = outputName(o.URL, r.Output); err != nil {
			return nil, err
		}
		if r.Output == output.Standard {
			return nil, fmt.Errorf("%q is standard output, which the daemon has none of: allowed is the name of a file", r.Output)
		}
		// x, ./x and y/../x are the same file.
		r.Output = filepath.Clean(r.Output)
		if !filepath.IsLocal(r.Output) || r.Output == "." {
			return nil, fmt.Errorf("%q is not a name inside the daemon's directory", r.Output)
		}
		o.Verified = checksum != nil
		o.Balance = new(transfer.Balance)
		name := filepath.Join(directory, r.Output)
		o.Output = func() (download.Sink, error) {
			return partfile.Create(partfile.Options{Name: name, Checksum: checksum, Resume: true, URL: resumeURL(o.URL), NoReplace: true, Log: o.Log})
		}
		return func(ctx context.Context, to transfer.Recorder) (rundir.Summary, error) {
			o.Recorders = []transfer.Recorder{to}
			if exported != nil {
				o.Recorders = append(o.Recorders, exported.Download())
			}
			return download.Run(ctx, o)
		}, nil
	}
}
