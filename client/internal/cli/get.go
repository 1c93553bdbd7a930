package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/output"
	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/progress"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/weburl"
)

// getFlags are the flags of "multilink get" as the user wrote them.
type getFlags struct {
	engineFlags
	requestFlags
	metrics  metricsFlags
	slice    string
	output   string
	checksum string
	resume   bool
	runDir   string
	json     bool
	quiet    bool
	// file is the output, if it is a file.
	file *partfile.File
	// toStdout is true if the output is standard output.
	toStdout bool
}

func newGet(logs *logging) *cobra.Command {
	f := &getFlags{}
	command := &cobra.Command{
		Use:   "get URL",
		Short: "Download a file",
		Long: `Download a file over several links, which are network devices.

The URL is one of https, or of http if --checksum says what must arrive. If the
server does not serve ranges, the fastest link brings the file alone. The file
appears under its name only when it is whole; until then it is NAME.part.

With -o - the bytes go to standard output, in order, over all links. They go
into a pipe or a character device that -o names in the same way. Then a failed
download cannot be resumed, and a wrong --checksum is known only at the end.
Terminals, block devices, sockets and directories are refused.

A user and password in the URL, https://USER:PASSWORD@HOST/PATH, are sent to
HOST alone, and neither stored nor shown. The same holds for what --header
says; the names of these flags are curl's.`,
		Example: `  multilink get https://example.org/file --link wlan0 --link rmnet0
  multilink get https://example.org/file --link wifi=wlan0 --link lte=rmnet0 --algorithm alg1 --upper-limit 2MB -o copy
  multilink get https://example.org/file.tar --link wlan0 --link rmnet0 -o - | tar x
  multilink get https://example.org/file --link wlan0 --link rmnet0 -H @token -r 0-999999 -o begin
  multilink get https://example.org/file --link wlan0 --algorithm single --json --run-dir results/1`,
		Args: exactly("URL"),
		RunE: func(command *cobra.Command, arguments []string) error {
			return runGet(command, arguments[0], f, logs)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	f.engineFlags.register(flags)
	f.requestFlags.register(flags)
	f.registerRedirects(flags)
	f.registerHTTP3(flags)
	f.registerOnlyHTTP3(flags)
	flags.StringVarP(&f.slice, "range", "r", "", "get this part of the file, as FIRST-LAST, FIRST- or -LENGTH in bytes")
	flags.StringVarP(&f.output, "output", "o", "", "name of the file (default: last part of the URL); - is standard output")
	flags.StringVar(&f.checksum, "checksum", "", "what the file must have, as sha-256=HEX")
	flags.BoolVar(&f.resume, "resume", true, "begin with what an earlier call left, and leave what the next one can use")
	flags.StringVar(&f.runDir, "run-dir", "", "directory for client.jsonl and client.json")
	f.metrics.register(flags)
	flags.BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	flags.BoolVar(&f.quiet, "quiet", false, "print nothing but errors")
	return command
}

func runGet(command *cobra.Command, rawURL string, f *getFlags, logs *logging) error {
	stdout, stderr := command.OutOrStdout(), command.ErrOrStderr()
	options, err := f.options(command, rawURL)
	if err != nil {
		return usageError{err}
	}
	if options.Log, err = logs.logger(stderr); err != nil {
		return err
	}

	exported, stopMetrics, err := f.metrics.start(f.algorithm, options.Links)
	if err != nil {
		return err
	}
	defer stopMetrics()
	if exported != nil {
		options.Recorders = append(options.Recorders, exported.Download())
	}
	var dir *rundir.Dir
	if f.runDir != "" {
		if dir, err = rundir.Open(f.runDir, rundir.OfClient); err != nil {
			return err
		}
		dir.Record(0, f.startEvent(options))
		options.Recorders = append(options.Recorders, dir)
	}
	var bars *progress.Bars
	if terminal, ok := printable.Raw(stderr).(*os.File); ok && !f.quiet && term.IsTerminal(int(terminal.Fd())) {
		bars = progress.New(terminal, options.Links)
		options.Recorders = append(options.Recorders, bars)
	}

	if note := ignoredProxy(options.URL); note != "" {
		options.Log.Warn(note)
	}
	summary, err := download.Run(command.Context(), options)
	if bars != nil {
		bars.Close()
	}
	summary.Version, summary.Go, summary.Algorithm = version(), runtime.Version(), f.algorithm
	if dir != nil {
		err = errors.Join(err, dir.Close(summary))
	}
	if f.toStdout {
		stdout = stderr
	}
	if f.json {
		return errors.Join(err, printJSON(stdout, summary))
	}
	if err == nil && !f.quiet {
		if f.file != nil {
			f.output = f.file.Name
		}
		printSummary(stdout, f.output, options.Links, summary)
	}
	return err
}

func printSummary(w io.Writer, name string, links []transfer.Link, s rundir.Summary) {
	took := time.Duration(s.Download)
	arrived := s.Size - s.Resumed
	whole := ""
	if s.Resumed > 0 {
		whole = fmt.Sprintf("%d bytes, of these now ", s.Size)
	}
	fmt.Fprintf(w, "%s: %s%d bytes in %.3f s, %.2f Mbit/s, sha-256 %s\n", name, whole, arrived, took.Seconds(), arrived.Per(took).MegabitsPerSecond(), s.SHA256)
	for _, l := range links {
		part := s.Links[l.Name]
		fmt.Fprintf(w, "  %s: %d bytes in %d requests until %.3f s\n", l.Name, part.Bytes, part.Requests, time.Duration(part.Finish).Seconds())
	}
}

// options checks the arguments.
func (f *getFlags) options(command *cobra.Command, rawURL string) (o download.Options, err error) {
	checksum, err := parseChecksum(f.checksum)
	if err != nil {
		return o, err
	}
	given, err := parseURL(rawURL, checksum)
	if err != nil {
		return o, err
	}
	slice, err := parseSlice(f.slice)
	if err != nil {
		return o, err
	}
	u, authorization := credentials.Cut(given)
	credentials.HideArgument(rawURL)
	r, err := f.read()
	if err != nil {
		return o, err
	}
	if f.output, err = outputName(u, f.output); err != nil {
		return o, err
	}
	if o, err = f.engineFlags.options(command.Flags()); err != nil {
		return o, err
	}
	if f.onlyHTTP3 && u.Scheme != "https" {
		return o, invalid("http3-only", "true", "the URL is of %s, allowed is https", u.Scheme)
	}
	o.URL, o.Verified, o.Slice = u, checksum != nil, slice
	if err := r.into(&o, u, authorization); err != nil {
		return o, err
	}
	o.Output = func() (download.Sink, error) {
		stream, err := output.Open(command.Context(), f.output, printable.Raw(command.OutOrStdout()), checksum)
		if err != nil {
			return nil, err
		}
		if stream != nil {
			f.toStdout = stream.IsStandard
			return stream, nil
		}
		options := partfile.Options{Name: f.output, Checksum: checksum, Resume: f.resume, URL: resumeURL(u)}
		if slice != nil {
			options.URL += "#bytes=" + f.slice // URLs of other downloads have no fragment.
		}
		file, err := partfile.Create(options)
		if err != nil {
			return nil, err
		}
		f.file = file
		if slice == nil {
			return file, nil
		}
		return &partfile.Slice{File: file}, nil
	}
	return o, nil
}

// resumeURL returns the URL by which downloads are told apart: without the fragment, which the
// server never sees.
func resumeURL(u *url.URL) string {
	unfragmented := *u
	unfragmented.Fragment, unfragmented.RawFragment = "", ""
	return unfragmented.String()
}

// parseURL parses the URL of a download. Over plain HTTP anybody on the way could send another
// file. Only a checksum detects that.
func parseURL(text string, checksum []byte) (*url.URL, error) {
	u, err := weburl.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a URL to download: %w", printable.Quote(credentials.Hide(text)), err)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || checksum == nil) || u.Hostname() == "" {
		return nil, fmt.Errorf("%s is not a URL to download: allowed is https://HOST/PATH, and http:// with --checksum", printable.Quote(credentials.Hide(text)))
	}
	return u, nil
}

// outputName returns the given name, or the last part of the URL.
func outputName(u *url.URL, given string) (string, error) {
	if given != "" {
		return given, partfile.CheckName(given)
	}
	name := path.Base(u.Path)
	if name == "." || name == "/" {
		return "", fmt.Errorf("%s does not end in a file name: give one with --output", u)
	}
	if printable.Text(name) != name {
		return "", fmt.Errorf("the file name %q in the URL has characters that cannot be printed: give one with --output", name)
	}
	return name, partfile.CheckName(name)
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
