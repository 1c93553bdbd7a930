package cli

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/progress"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
)

// getFlags are the flags of "multilink get" as the user wrote them.
type getFlags struct {
	links      []string
	algorithm  string
	output     string
	bandwidths []string
	upperLimit quantity.Size
	first      quantity.Size
	padding    float64
	plain      bool
	overlap    float64
	window     time.Duration
	checksum   string
	caFile     string
	runDir     string
	json       bool
	quiet      bool
}

// algorithms lists the values of --algorithm.
var algorithms = []string{"single", "naive", "alg1", "alg2", "alg3"}

func newGet(logLevel slog.Leveler) *cobra.Command {
	// The first requests together are as large as one round of alg1 with its
	// default limit: every link starts with requests of the size that it
	// would get later, and its first estimate covers several round trips.
	f := &getFlags{upperLimit: 1_000_000, first: 1_000_000}
	command := &cobra.Command{
		Use:   "get URL",
		Short: "Download a file",
		Long: `Download a file over several links, which are network devices.

The server must speak HTTP/2 over TLS and serve ranges. The file appears
under its name only when it is whole; until then it is NAME.part.`,
		Example: `  multilink get https://example.org/file --link wlan0 --link rmnet0
  multilink get https://example.org/file --link wifi=wlan0 --link lte=rmnet0 --algorithm alg1 --upper-limit 2MB -o copy
  multilink get https://example.org/file --link wlan0 --algorithm single --json --run-dir results/1`,
		Args: exactly("URL"),
		RunE: func(command *cobra.Command, arguments []string) error {
			return runGet(command, arguments[0], f, logLevel)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.links, "link", nil, "use the device under this name, as NAME=DEVICE or DEVICE (repeatable; single takes one)")
	flags.StringVar(&f.algorithm, "algorithm", "alg3", "how to split the work: "+strings.Join(algorithms, ", "))
	flags.StringVarP(&f.output, "output", "o", "", "name of the file (default: last part of the URL)")
	flags.StringArrayVar(&f.bandwidths, "bandwidth", nil, "B of alg2 and alg3, as NAME=RATE such as wifi=80Mbit/s (repeatable; default: highest throughput seen)")
	flags.Var(&f.upperLimit, "upper-limit", "U of alg1")
	flags.Float64Var(&f.padding, "padding", 0.1, "f of alg3, above 0 to 1")
	flags.BoolVar(&f.plain, "plain", false, "alg3 without padding")
	flags.Var(&f.first, "first-request", "sum of the first requests of alg1, alg2 and alg3, split equally over the links")
	flags.Float64Var(&f.overlap, "overlap", 0.6, "part of a link's newest request after which the next is sent, above 0 to 1")
	flags.DurationVar(&f.window, "window", time.Second, "time over which throughput is averaged")
	flags.StringVar(&f.checksum, "checksum", "", "what the file must have, as sha-256=HEX")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file with the only authorities to trust (default: the system's)")
	flags.StringVar(&f.runDir, "run-dir", "", "directory for client.jsonl and client.json")
	flags.BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	flags.BoolVar(&f.quiet, "quiet", false, "print nothing but errors")
	return command
}

func runGet(command *cobra.Command, rawURL string, f *getFlags, logLevel slog.Leveler) error {
	stdout, stderr := command.OutOrStdout(), command.ErrOrStderr()
	if f.plain && command.Flags().Changed("padding") {
		return usagef("--plain and --padding exclude each other: plain alg3 has no padding")
	}
	options, err := f.options(rawURL)
	if err != nil {
		return usageError{err}
	}
	options.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: logLevel}))

	var dir *rundir.Dir
	if f.runDir != "" {
		if dir, err = rundir.Open(f.runDir); err != nil {
			return err
		}
		dir.Record(0, f.startEvent(options))
		options.Recorders = append(options.Recorders, dir)
	}
	var bars *progress.Bars
	if terminal, ok := stderr.(*os.File); ok && !f.quiet && term.IsTerminal(int(terminal.Fd())) {
		bars = progress.New(terminal, options.Links)
		options.Recorders = append(options.Recorders, bars)
	}

	summary, err := download.Get(command.Context(), options)
	if bars != nil {
		bars.Close()
	}
	summary.Version, summary.Go, summary.Algorithm = version(), runtime.Version(), f.algorithm
	if dir != nil {
		err = errors.Join(err, dir.Close(summary))
	}
	if f.json {
		return errors.Join(err, json.NewEncoder(stdout).Encode(summary))
	}
	if err == nil && !f.quiet {
		printSummary(stdout, options, summary)
	}
	return err
}

func printSummary(w io.Writer, o download.Options, s rundir.Summary) {
	seconds := float64(s.Download) / 1e9
	fmt.Fprintf(w, "%s: %d bytes in %.3f s, %.2f Mbit/s, sha-256 %s\n", o.Output, s.Size, seconds, 8*float64(s.Size)/seconds/1e6, s.SHA256)
	for _, l := range o.Links {
		part := s.Links[l.Name]
		fmt.Fprintf(w, "  %s: %d bytes in %d requests until %.3f s\n", l.Name, part.Bytes, part.Requests, float64(part.Finish)/1e9)
	}
}

// startEvent records the options that decide what the algorithm does.
func (f *getFlags) startEvent(o download.Options) *rundir.Start {
	start := &rundir.Start{
		Algorithm: f.algorithm,
		Options: map[string]any{
			"first_request_bytes": int64(f.first),
			"upper_limit_bytes":   int64(f.upperLimit),
			"padding":             f.factor(),
			"overlap":             f.overlap,
			"window_ns":           f.window.Nanoseconds(),
			"bandwidth_bps":       map[string]float64{},
		},
	}
	for _, l := range o.Links {
		start.Links = append(start.Links, rundir.LinkDevice{Link: l.Name, Device: l.Device})
		if l.Bandwidth > 0 {
			start.Options["bandwidth_bps"].(map[string]float64)[l.Name] = 8 * l.Bandwidth
		}
	}
	return start
}

// factor is alg3's f: with 1 the padding is all of the difference, which is
// the plain algorithm.
func (f *getFlags) factor() float64 {
	if f.plain {
		return 1
	}
	return f.padding
}

// options checks the flags.
func (f *getFlags) options(rawURL string) (download.Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return download.Options{}, fmt.Errorf("%q is not a URL to download: allowed is https://HOST/PATH", rawURL)
	}
	o := download.Options{URL: u, Output: f.output, Overlap: f.overlap, Window: f.window}
	if o.Output == "" {
		if o.Output = path.Base(u.Path); o.Output == "." || o.Output == "/" {
			return o, fmt.Errorf("%s does not end in a file name: give one with --output", rawURL)
		}
	}
	if !(f.overlap > 0 && f.overlap <= 1) {
		return o, fmt.Errorf("--overlap %v: allowed is above 0 to 1", f.overlap)
	}
	if !(f.padding > 0 && f.padding <= 1) {
		return o, fmt.Errorf("--padding %v: allowed is above 0 to 1", f.padding)
	}
	if f.window <= 0 {
		return o, fmt.Errorf("--window %v: allowed are times above 0 such as 1s", f.window)
	}
	if o.Links, err = f.parseLinks(); err != nil {
		return o, err
	}
	if o.Scheduler, err = f.scheduler(); err != nil {
		return o, err
	}
	if o.Checksum, err = parseChecksum(f.checksum); err != nil {
		return o, err
	}
	o.TLS, err = f.tlsConfig()
	return o, err
}

func (f *getFlags) scheduler() (schedule.Scheduler, error) {
	switch f.algorithm {
	case "single":
		return schedule.Single{}, nil
	case "naive":
		return schedule.Naive{}, nil
	case "alg1":
		return schedule.Alg1{UpperLimit: int64(f.upperLimit), FirstRequests: int64(f.first)}, nil
	case "alg2":
		return schedule.Alg2{FirstRequests: int64(f.first)}, nil
	case "alg3":
		return schedule.Alg3{FirstRequests: int64(f.first), Padding: f.factor()}, nil
	}
	return nil, fmt.Errorf("--algorithm %s: allowed are %s", f.algorithm, strings.Join(algorithms, ", "))
}

func (f *getFlags) parseLinks() ([]download.Link, error) {
	if len(f.links) == 0 {
		return nil, errors.New("at least one --link is needed, as NAME=DEVICE or DEVICE")
	}
	if f.algorithm == "single" && len(f.links) > 1 {
		return nil, fmt.Errorf("--algorithm single uses one --link, not %d", len(f.links))
	}
	var links []download.Link
	var names []string
	index := map[string]int{}
	for i, text := range f.links {
		name, device, ok := strings.Cut(text, "=")
		if !ok {
			device = name
		}
		if name == "" {
			return nil, fmt.Errorf("--link %s: allowed is NAME=DEVICE or DEVICE", text)
		}
		if err := link.CheckDevice(device); err != nil {
			return nil, fmt.Errorf("--link %s: %w", text, err)
		}
		if _, ok := index[name]; ok {
			return nil, fmt.Errorf("--link %s: the name %s is taken, every link needs its own", text, name)
		}
		index[name] = i
		names = append(names, name)
		links = append(links, download.Link{Name: name, Device: device, Dial: link.Dialer{Device: device}.Dial})
	}
	for _, text := range f.bandwidths {
		name, rate, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--bandwidth %s: allowed is NAME=RATE such as wifi=80Mbit/s", text)
		}
		i, ok := index[name]
		if !ok {
			return nil, fmt.Errorf("--bandwidth %s: there is no link %q, the links are %s", text, name, strings.Join(names, ", "))
		}
		bandwidth, err := quantity.ParseRate(rate)
		if err != nil {
			return nil, fmt.Errorf("--bandwidth %s: %w", text, err)
		}
		links[i].Bandwidth = bandwidth.BytesPerSecond()
	}
	return links, nil
}

func parseChecksum(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	kind, digits, _ := strings.Cut(text, "=")
	sum, err := hex.DecodeString(digits)
	if kind != "sha-256" || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("--checksum %s: allowed is sha-256= and %d hexadecimal digits", text, 2*sha256.Size)
	}
	return sum, nil
}

func (f *getFlags) tlsConfig() (*tls.Config, error) {
	if f.caFile == "" {
		return &tls.Config{}, nil
	}
	pem, err := os.ReadFile(f.caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca-file %s: there is no certificate in it, PEM is needed", f.caFile)
	}
	return &tls.Config{RootCAs: authorities}, nil
}
