package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/upload"
	"github.com/linklab/linklab/client/internal/weburl"
)

// putFlags are the flags of "multilink put" as the user wrote them.
type putFlags struct {
	engineFlags
	requestFlags
	runDir string
	ranged bool
	json   bool
	quiet  bool
}

func newPut() *cobra.Command {
	f := &putFlags{}
	command := &cobra.Command{
		Use:   "put FILE URL",
		Short: "Upload a file",
		Long: `Upload a file over several links, by PUT.

One link sends the whole file. If that link fails, another one starts anew.
With --ranged all links send ranges (Content-Range, RFC 9110 14.5). A server
that ignores Content-Range keeps the last range as the whole file.`,
		Example: `  multilink put film.mp4 https://example.org/uploads/film.mp4 --link wlan0 --link rmnet0
  multilink put film.mp4 https://example.org/uploads/film.mp4 --link wifi=wlan0 --link lte=rmnet0 --algorithm alg1`,
		Args: exactly("FILE", "URL"),
		RunE: func(command *cobra.Command, arguments []string) error {
			return runPut(command, arguments[0], arguments[1], f)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	f.engineFlags.register(flags)
	f.requestFlags.register(flags)
	flags.StringVar(&f.runDir, "run-dir", "", "directory for client.jsonl and client.json")
	flags.BoolVar(&f.ranged, "ranged", false, "the server is known to take ranges: send them over all links")
	flags.BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	flags.BoolVar(&f.quiet, "quiet", false, "print nothing but errors")
	return command
}

func runPut(command *cobra.Command, name, rawURL string, f *putFlags) error {
	options, started, err := f.options(rawURL, command.Flags())
	if err != nil {
		return usageError{err}
	}
	file, err := plainfile.Open(name) // Parts of the file are sent, some twice.
	if err != nil {
		return err
	}
	defer file.Close()
	status, err := file.Stat()
	if err == nil && status.Size() == 0 {
		err = fmt.Errorf("%s: allowed is a file that is not empty", name)
	}
	if err != nil {
		return err
	}
	options.File, options.Size = file, quantity.Bytes(status.Size())
	var dir *rundir.Dir
	if f.runDir != "" {
		if dir, err = rundir.Open(f.runDir, rundir.OfClient); err != nil {
			return err
		}
		dir.Record(0, started)
		options.Recorder = dir
	}
	options.Ranged = f.ranged
	var digest string
	options.Check = func() (err error) {
		digest, err = digestOf(file, status)
		return err
	}
	if note := ignoredProxy(options.URL); note != "" && !f.quiet {
		fmt.Fprintln(command.ErrOrStderr(), note)
	}
	summary, err := upload.Run(command.Context(), options)
	summary.Version, summary.Go, summary.Algorithm, summary.SHA256 = version(), runtime.Version(), f.algorithm, digest
	if dir != nil {
		err = errors.Join(err, dir.Close(summary))
	}
	if f.json {
		return errors.Join(err, printJSON(command.OutOrStdout(), summary))
	}
	if err == nil && !f.quiet {
		took := time.Duration(summary.Download)
		fmt.Fprintf(command.OutOrStdout(), "%s: %d bytes in %.3f s, %.2f Mbit/s\n", name, summary.Size, took.Seconds(), summary.Size.Per(took).MegabitsPerSecond())
	}
	return err
}

// digestOf returns the SHA-256 of a file that has not changed. If it changed during the upload, the
// server has parts of both versions.
func digestOf(file *os.File, was os.FileInfo) (string, error) {
	digest := sha256.New()
	if _, err := io.Copy(digest, io.NewSectionReader(file, 0, was.Size())); err != nil {
		return "", err
	}
	is, err := file.Stat()
	if err == nil && (is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime())) {
		err = errors.New("the file changed while it was sent: the server has parts of both")
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// options checks the arguments, and describes them for the run directory.
func (f *putFlags) options(rawURL string, flags *pflag.FlagSet) (o upload.Options, started *rundir.Start, err error) {
	u, err := weburl.Parse(rawURL)
	if err != nil {
		return o, nil, fmt.Errorf("%s is not a URL to upload to: %w", printable.Quote(credentials.Hide(rawURL)), err)
	}
	if u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return o, nil, fmt.Errorf("%s is not a URL to upload to: allowed is https://HOST/PATH without credentials", printable.Quote(credentials.Hide(rawURL)))
	}
	engine, err := f.engineFlags.options(flags)
	if err != nil {
		return o, nil, err
	}
	if algorithm, err := schedule.Find(f.algorithm); err != nil || !algorithm.Uploads {
		uploads := namesOf(func(a schedule.Algorithm) bool { return a.Uploads })
		return o, nil, invalid("algorithm", f.algorithm, "it plans downloads alone: allowed are %s", uploads)
	}
	r, err := f.read()
	if err != nil {
		return o, nil, err
	}
	o = upload.Options{
		URL: u, TLS: engine.TLS, Hellos: engine.Hellos, Links: engine.Links, Scheduler: engine.Scheduler,
		Overlap: engine.Overlap, Window: engine.Window, Rescue: engine.Rescue, Connections: engine.Connections, GiveUp: engine.GiveUp, LowestRate: engine.LowestRate,
	}
	o.Private = r.private
	if o.Header, err = r.to(u, ""); err != nil {
		return o, nil, err
	}
	return o, f.startEvent(engine), nil
}
