package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/internal/weburl"
)

// probeFile is the largest file of linklab's server for tests on hardware.
const probeFile = "payload-250000000-1.bin"

// allLinks is the name of the part in which all links download together.
const allLinks = "all"

// betweenParts is longer than the queues of real links.
const betweenParts = 2 * time.Second

// errProbed ends a part of a probe after its time.
var errProbed = errors.New("the time of the probe is over")

// probeFlags are the flags of "multilink probe" as the user wrote them.
type probeFlags struct {
	engineFlags
	requestFlags
	server string
	time   time.Duration
	runDir string
}

func newProbe(logs *logging) *cobra.Command {
	f := &probeFlags{}
	f.rescues = true
	f.usual = "alg3" // One connection each: the result shows what links can carry.
	command := &cobra.Command{
		Use:   "probe",
		Short: "Measure each link alone and all together",
		Long: `Measure each link alone, and then all together, by downloading a file for some
time and keeping nothing of it. The server is linklab's for tests on hardware
(docker compose --profile field up server), or any file that serves ranges and
is large enough.

Each part leaves a run directory in --run-dir, called like its link, the last
"all". linklab import DIR/* --scenario FILE makes a scenario of them.`,
		Example: `  multilink probe --link wifi=wlan0 --link lte=rmnet0 --server https://192.0.2.7:8443 --ca-file ca.pem --run-dir drive/1
  multilink probe --link wlan0 --server https://example.org/large.bin --time 30s --run-dir drive/2`,
		Args: exactly(),
		RunE: func(command *cobra.Command, _ []string) error { return runProbe(command, f, logs) },
	}
	flags := command.Flags()
	flags.SortFlags = false
	f.engineFlags.register(flags)
	f.requestFlags.register(flags)
	f.registerRedirects(flags)
	f.registerOnlyHTTP3(flags)
	flags.StringVar(&f.server, "server", "", "https address of the server, or the URL of a file on it")
	flags.DurationVar(&f.time, "time", 10*time.Second, "how long each part takes at most; the file's end ends it, too")
	flags.StringVar(&f.runDir, "run-dir", "", "directory for the run directories of the parts")
	return command
}

func runProbe(command *cobra.Command, f *probeFlags, logs *logging) error {
	stdout := command.OutOrStdout()
	together, err := f.options(command)
	if err != nil {
		return err
	}
	together.Rescue = true // Whatever the algorithm: a server without HTTP/2 can be probed, too.
	if together.Log, err = logs.logger(command.ErrOrStderr()); err != nil {
		return err
	}
	if note := ignoredProxy(together.URL); note != "" {
		together.Log.Warn(note)
	}
	alone, err := schedule.Find("single")
	if err != nil {
		return err
	}
	for i, l := range together.Links {
		if i > 0 {
			f.pause(command.Context())
		}
		o := together
		o.Links = together.Links[i : i+1]
		// One connection shows the link alone.
		o.Scheduler, o.Connections = alone.Scheduler(schedule.Parameters{}), nil
		if err := f.part(command.Context(), stdout, l.Name, alone.Name, o); err != nil {
			return err
		}
	}
	if len(together.Links) > 1 {
		f.pause(command.Context())
		if err := f.part(command.Context(), stdout, allLinks, f.algorithm, together); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "a scenario of this: linklab import %s --scenario FILE.yaml\n", filepath.Join(f.runDir, "*"))
	return nil
}

// pause lets the links' queues drain. Bytes of the part before would delay the handshakes of the
// next part.
func (f *probeFlags) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(betweenParts):
	}
}

// options checks the flags.
func (f *probeFlags) options(command *cobra.Command) (o download.Options, err error) {
	if f.server == "" {
		return o, usagef("--server is needed: https://HOST:PORT, or the URL of a file")
	}
	if f.runDir == "" {
		return o, usagef("--run-dir is needed: a directory for what is measured")
	}
	if f.time < time.Second {
		return o, usageError{invalid("time", f.time, "allowed are times from 1s")}
	}
	u, err := weburl.Parse(f.server)
	if err != nil {
		return o, usageError{invalid("server", printable.Quote(credentials.Hide(f.server)), "%w", err)}
	}
	if u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return o, usageError{invalid("server", credentials.Hide(f.server), "allowed is https://HOST:PORT or https://HOST/PATH, without credentials")}
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = path.Join("/", probeFile)
	}
	if o, err = f.engineFlags.options(command.Flags()); err != nil {
		return o, err
	}
	for _, l := range o.Links {
		if l.Name == allLinks || l.Name != filepath.Base(l.Name) {
			return o, usageError{invalid("link", l.Name, "a directory is called like it: allowed are names without slashes other than %s", allLinks)}
		}
	}
	o.URL = u
	r, err := f.read()
	if err == nil {
		err = r.into(&o, u, "")
	}
	if err != nil {
		return o, usageError{err}
	}
	return o, nil
}

// part measures some links and prints the result.
func (f *probeFlags) part(ctx context.Context, w io.Writer, name, algorithm string, o download.Options) error {
	dir, err := rundir.Open(filepath.Join(f.runDir, name), rundir.OfClient)
	if err != nil {
		return err
	}
	of := f.engineFlags
	of.algorithm = algorithm
	dir.Record(0, of.startEvent(o))
	o.Recorders = []transfer.Recorder{dir}
	o.Output = func() (download.Sink, error) { return nowhere{}, nil }
	limited, cancel := context.WithTimeoutCause(ctx, f.time, errProbed)
	defer cancel()
	summary, err := download.Run(limited, o)
	if errors.Is(err, errProbed) {
		err = nil
	}
	summary.Version, summary.Go, summary.Algorithm = version(), runtime.Version(), algorithm
	if err = errors.Join(err, dir.Close(summary)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	took := time.Duration(summary.Download)
	fmt.Fprintf(w, "%s, %.1f s:", name, took.Seconds())
	for _, l := range o.Links {
		part := summary.Links[l.Name]
		rtt := time.Duration(part.MinRTT).Seconds() * 1e3
		fmt.Fprintf(w, " %s %.2f Mbit/s, round trip %.1f ms;", l.Name, part.Bytes.Per(took).MegabitsPerSecond(), rtt)
	}
	fmt.Fprintln(w)
	return nil
}

// nowhere is an output that discards everything.
type nowhere struct{}

func (nowhere) Begin(transport.Resource, ranges.Range) ([]ranges.Range, error) { return nil, nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error)                         { return len(p), nil }
func (nowhere) Commit() ([]byte, error)                                        { return nil, nil }
func (nowhere) Abort(bool) error                                               { return nil }
