package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
)

// engineFlags are the flags of every command that downloads, as the user
// wrote them.
type engineFlags struct {
	links      []string
	algorithm  string
	bandwidths []string
	upperLimit quantity.Size
	first      quantity.Size
	padding    float64
	plain      bool
	overlap    float64
	window     time.Duration
	caFile     string
}

// algorithms lists the values of --algorithm.
var algorithms = []string{"single", "naive", "alg1", "alg2", "alg3"}

// register adds the flags with their default values.
func (f *engineFlags) register(flags *pflag.FlagSet) {
	// The first requests together are as large as one round of alg1 with its
	// default limit: every link starts with requests of the size that it
	// would get later, and its first estimate covers several round trips.
	f.upperLimit, f.first = 1_000_000, 1_000_000
	flags.StringArrayVar(&f.links, "link", nil, "use the device under this name, as NAME=DEVICE or DEVICE (repeatable; single takes one)")
	flags.StringVar(&f.algorithm, "algorithm", "alg3", "how to split the work: "+strings.Join(algorithms, ", "))
	flags.StringArrayVar(&f.bandwidths, "bandwidth", nil, "B of alg2 and alg3, as NAME=RATE such as wifi=80Mbit/s (repeatable; default: highest throughput seen)")
	flags.Var(&f.upperLimit, "upper-limit", "U of alg1")
	flags.Float64Var(&f.padding, "padding", 0.1, "f of alg3, above 0 to 1")
	flags.BoolVar(&f.plain, "plain", false, "alg3 without padding")
	flags.Var(&f.first, "first-request", "sum of the first requests of alg1, alg2 and alg3, split equally over the links")
	flags.Float64Var(&f.overlap, "overlap", 0.6, "part of a link's newest request after which the next is sent, above 0 to 1")
	flags.DurationVar(&f.window, "window", time.Second, "time over which throughput is averaged")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file with the only authorities to trust (default: the system's)")
}

// options checks the flags; flags tells which of them were given.
func (f *engineFlags) options(flags *pflag.FlagSet) (o download.Options, err error) {
	if f.plain && flags.Changed("padding") {
		return o, errors.New("--plain and --padding exclude each other: plain alg3 has no padding")
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
	o.Overlap, o.Window = f.overlap, f.window
	if o.Links, err = f.parseLinks(); err != nil {
		return o, err
	}
	if o.Scheduler, err = f.scheduler(); err != nil {
		return o, err
	}
	o.TLS, err = f.tlsConfig()
	return o, err
}

func (f *engineFlags) scheduler() (schedule.Scheduler, error) {
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

func (f *engineFlags) parseLinks() ([]download.Link, error) {
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

func (f *engineFlags) tlsConfig() (*tls.Config, error) {
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

// startEvent records the options that decide what the algorithm does.
func (f *engineFlags) startEvent(o download.Options) *rundir.Start {
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
func (f *engineFlags) factor() float64 {
	if f.plain {
		return 1
	}
	return f.padding
}
