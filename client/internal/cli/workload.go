package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/credentials"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/weburl"
	"github.com/linklab/linklab/client/internal/workload"
)

// workloadFlags are the flags of all workloads, as the user wrote them.
type workloadFlags struct {
	size     quantity.Bytes
	device   string
	mptcp    bool
	caFile   string
	checksum string
	giveUp   time.Duration
	runDir   string
	json     bool
}

func newWorkload() *cobra.Command {
	command := &cobra.Command{
		Use:   "workload",
		Short: "Do what a player, a browser or a messenger does, and measure it",
		Long: `Do what a program in front of a download does, and measure how it goes for
that: a player, a browser that loads a page, rounds of messages, a stream at a
steady pace. The file at the URL is what it asks for in parts; the server must
serve ranges. The requests are HTTP/1.1.

They take the way that the system chooses, or a --device, or Multipath TCP; or a
proxy of multilink's own, which is started with what follows " -- proxy" and
ends with the workload.`,
		Example: `  multilink workload player https://example.org/film.mp4 --size 90MB --rate 6Mbit/s --device wlan0
  multilink workload page https://example.org/file --size 3MB --connections 6 -- proxy --link wlan0 --link rmnet0`,
		RunE: func(*cobra.Command, []string) error {
			return usagef("a workload is needed: player, page, rounds or paced")
		},
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return usagef("there is no workload %q: allowed are player, page, rounds, paced", arguments[0])
			}
			return nil
		},
	}
	command.AddCommand(newPlayer(), newPage(), newRounds(), newPaced())
	return command
}

// oneWorkload returns the command of a workload. made makes the workload from its flags.
func oneWorkload(name, short, example string, register func(*pflag.FlagSet), made func(*workloadFlags) (workload.Workload, error)) *cobra.Command {
	f := &workloadFlags{}
	command := &cobra.Command{
		Use:     name + " URL [-- proxy FLAGS]",
		Short:   short,
		Example: "  multilink workload " + example,
		Args: func(command *cobra.Command, arguments []string) error {
			given, through := split(command, arguments)
			if len(given) != 1 {
				return usagef("%s takes 1 argument (URL), not %d", name, len(given))
			}
			if through != nil && through[0] != "proxy" {
				return usagef("%q after -- is not what requests can go through: allowed is proxy, with its flags", through[0])
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return runWorkload(command, arguments, f, made)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.Var(&f.size, "size", "size of the file")
	register(flags)
	flags.StringVar(&f.device, "device", "", "network device to use (default: what the system chooses)")
	flags.BoolVar(&f.mptcp, "mptcp", false, "use Multipath TCP where the server speaks it")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file with the only authorities to trust (default: the system's)")
	flags.StringVar(&f.checksum, "checksum", "", "what the file must have, as sha-256=HEX")
	flags.DurationVar(&f.giveUp, "give-up", 5*time.Minute, "time without a byte after which the workload fails")
	flags.StringVar(&f.runDir, "run-dir", "", "directory for workload.jsonl and workload.json")
	flags.BoolVar(&f.json, "json", false, "print the result as one JSON object")
	return command
}

// split returns the arguments before and after "--". after is empty if there are none.
func split(command *cobra.Command, arguments []string) (before, after []string) {
	dash := command.ArgsLenAtDash()
	if dash < 0 || dash == len(arguments) {
		return arguments, nil
	}
	return arguments[:dash], arguments[dash:]
}

func runWorkload(command *cobra.Command, arguments []string, f *workloadFlags, made func(*workloadFlags) (workload.Workload, error)) error {
	given, through := split(command, arguments)
	options, err := f.options(given[0], through)
	if err != nil {
		return usageError{err}
	}
	w, err := made(f)
	if err != nil {
		return usageError{err}
	}
	if through != nil {
		proxy, err := startedProxy(command.Context(), through, command.ErrOrStderr())
		if err != nil {
			return err
		}
		defer proxy.stop()
		options.Route.Gateway = proxy.address
	}
	if f.runDir != "" {
		if options.Dir, err = rundir.Open(f.runDir, rundir.OfWorkload); err != nil {
			return err
		}
	}
	result, err := workload.Run(command.Context(), w, options)
	result.Version = version()
	if options.Dir != nil {
		err = errors.Join(err, options.Dir.Close(result))
	}
	if f.json {
		return errors.Join(err, printJSON(command.OutOrStdout(), result))
	}
	if err == nil {
		printFigures(command.OutOrStdout(), result)
	}
	return err
}

func printFigures(w io.Writer, result rundir.Workload) {
	took := time.Duration(result.Duration)
	fmt.Fprintf(w, "%s: %d bytes in %.3f s\n", result.Workload, result.Bytes, took.Seconds())
	names := make([]string, 0, len(result.Figures))
	for name := range result.Figures {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %s: %.3f\n", name, result.Figures[name])
	}
}

// options checks the flags of all workloads.
func (f *workloadFlags) options(rawURL string, through []string) (o workload.Options, err error) {
	u, err := weburl.Parse(rawURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return o, fmt.Errorf("%q is not a URL for a workload: allowed is https://HOST/PATH, and http://, without credentials", credentials.Hide(rawURL))
	}
	if f.size == 0 {
		return o, errors.New("--size is needed: that of the file")
	}
	if f.giveUp <= 0 {
		return o, invalid("give-up", f.giveUp, "allowed are times above 0 such as 30s")
	}
	if through != nil && (f.device != "" || f.mptcp) {
		return o, errors.New("--device and --mptcp are for requests that do not go through a proxy")
	}
	if f.device != "" {
		if err := link.CheckDevice(f.device); err != nil {
			return o, invalid("device", f.device, "%w", err)
		}
	}
	o = workload.Options{URL: u, Size: f.size, GiveUp: f.giveUp}
	o.Route.Device, o.Route.Multipath = f.device, f.mptcp
	if o.Checksum, err = parseChecksum(f.checksum); err != nil {
		return o, err
	}
	o.Route.TLS, err = tlsConfig(f.caFile)
	return o, err
}

func newPlayer() *cobra.Command {
	var rate string
	var segment, start quantity.Bytes
	var low, high quantity.Bytes = 4e6, 20e6
	var length time.Duration
	var variation float64
	var seed uint64
	register := func(flags *pflag.FlagSet) {
		flags.StringVar(&rate, "rate", "", "mean rate at which the file plays, such as 6Mbit/s")
		flags.Var(&low, "low", "buffered bytes with which the player reads on after it was full")
		flags.Var(&high, "high", "buffered bytes with which it stops to read")
		flags.Var(&start, "start", "buffered bytes with which it begins to play, and goes on once it ran empty (default: --low)")
		flags.Var(&segment, "segment", "size of the parts that it asks for (default: all at once)")
		flags.DurationVar(&length, "segment-duration", 0, "or how long each of them plays")
		flags.Float64Var(&variation, "variation", 0, "standard deviation by mean of the bytes of the stream's seconds, 0 to 2")
		flags.Uint64Var(&seed, "seed", 1, "what they follow from")
	}
	made := func(f *workloadFlags) (workload.Workload, error) {
		parsed, err := quantity.ParseRate(rate)
		if err != nil {
			return nil, invalid("rate", rate, "%w", err)
		}
		if start == 0 {
			start = low
		}
		if low > high || start > high {
			return nil, invalid("high", &high, "allowed is what is not below --low and --start")
		}
		if !(variation >= 0 && variation <= 2) {
			return nil, invalid("variation", variation, "allowed is 0 to 2")
		}
		if segment > 0 && length > 0 {
			return nil, invalid("segment-duration", length, "it and --segment exclude each other")
		}
		media := workload.NewMedia(f.size, parsed, variation, seed)
		segments := []ranges.Range{{Length: f.size}}
		switch {
		case segment > 0:
			segments = workload.Pieces(f.size, segment)
		case length > 0:
			segments = media.Cut(length)
		}
		return workload.Player{
			Media: media, Segments: segments,
			Thresholds: workload.Thresholds{Start: start, Low: low, High: high},
		}, nil
	}
	return oneWorkload("player", "Play a stream while it arrives",
		"player https://example.org/film.mp4 --size 90MB --rate 6Mbit/s -- proxy --link wlan0 --link rmnet0", register, made)
}

func newPage() *cobra.Command {
	var sizes string
	connections := 6
	register := func(flags *pflag.FlagSet) {
		flags.StringVar(&sizes, "objects", "", "sizes of the objects in bytes, separated by commas; the first is the document, together they are the file")
		flags.IntVar(&connections, "connections", connections, "connections at a time")
	}
	made := func(f *workloadFlags) (workload.Workload, error) {
		objects, err := parseObjects(sizes, f.size)
		if err != nil {
			return nil, err
		}
		if connections < 1 || connections > 100 {
			return nil, invalid("connections", connections, "allowed are 1 to 100")
		}
		return workload.Page{Objects: objects, Connections: connections}, nil
	}
	return oneWorkload("page", "Load a page: a document, then the objects that it names",
		"page https://example.org/file --size 300kB --objects 40kB,160kB,100kB --device wlan0", register, made)
}

func parseObjects(sizes string, whole quantity.Bytes) (objects []ranges.Range, err error) {
	var offset quantity.Bytes
	for text := range strings.SplitSeq(sizes, ",") {
		var size quantity.Bytes
		if err := size.Set(text); err != nil {
			return nil, invalid("objects", "", "%w", err)
		}
		objects = append(objects, ranges.Range{Offset: offset, Length: size})
		offset += size
	}
	if offset != whole {
		return nil, invalid("objects", "", "they have %d bytes together, the file %d", offset, whole)
	}
	return objects, nil
}

func newRounds() *cobra.Command {
	var request, answer quantity.Bytes
	var think time.Duration
	register := func(flags *pflag.FlagSet) {
		flags.Var(&request, "request", "size of a message; the server answers its POST with the part that Range names (default: a GET)")
		flags.Var(&answer, "answer", "size of each answer")
		flags.DurationVar(&think, "think", 0, "time from an answer to the next message")
	}
	made := func(f *workloadFlags) (workload.Workload, error) {
		if answer == 0 {
			return nil, errors.New("--answer is needed: the size of each")
		}
		if think < 0 {
			return nil, invalid("think", think, "allowed are times such as 2s, and 0")
		}
		return workload.Rounds{Request: request, Answers: workload.Pieces(f.size, answer), Think: think}, nil
	}
	return oneWorkload("rounds", "Send messages, each after the answer to the last one",
		"rounds https://example.org/file --size 3MB --answer 100kB --think 1s --device wlan0", register, made)
}

func newPaced() *cobra.Command {
	var rate string
	every := time.Second
	register := func(flags *pflag.FlagSet) {
		flags.StringVar(&rate, "rate", "", "rate of the stream, such as 320kbit/s")
		flags.DurationVar(&every, "every", every, "time from one request to the next, which asks for as much as plays meanwhile")
	}
	made := func(f *workloadFlags) (workload.Workload, error) {
		parsed, err := quantity.ParseRate(rate)
		if err != nil {
			return nil, invalid("rate", rate, "%w", err)
		}
		each := quantity.Bytes(parsed.Over(every))
		if every <= 0 || each < 1 {
			return nil, invalid("every", every, "allowed are times in which the stream has a byte")
		}
		return workload.Paced{Pieces: workload.Pieces(f.size, each), Every: every}, nil
	}
	return oneWorkload("paced", "Ask for the pieces of a stream at a steady pace",
		"paced https://example.org/music.ogg --size 3MB --rate 320kbit/s --every 5s --device wlan0", register, made)
}
