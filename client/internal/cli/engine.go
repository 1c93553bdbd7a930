package cli

import (
	"cmp"
	"crypto/tls"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// defaultAlgorithm is the default.
const defaultAlgorithm = "adaptive"

// The values of --objective, and the algorithm that saves energy.
const (
	objectiveTime   = "time"
	objectiveEnergy = "energy"
	energySaving    = "adaptive-energy"
)

// The values of --http3.
const (
	http3No      = "false"
	http3Offered = "true"
	http3DNS     = "dns"
)

// mostSlowdown limits --slowdown: a download that takes longer never ends.
const mostSlowdown = 1000

// mostConnections limits --connections: servers regard more as an attack.
const mostConnections = 64

// engineFlags are the flags of every command that downloads, as the user wrote them.
type engineFlags struct {
	links       []string
	algorithm   string
	bandwidths  []string
	upperLimit  quantity.Bytes
	first       quantity.Bytes
	connections int
	padding     float64
	plain       bool
	overlap     float64
	window      time.Duration
	segment     quantity.Bytes
	objective   string
	slowdown    float64
	playback    string
	buffer      quantity.Bytes
	model       string
	caFile      string
	minTLS      string
	legacyTLS   bool
	giveUp      time.Duration
	lowest      string
	wireless    string
	dns         []string
	ipv4, ipv6  bool
	// http3 tells where links speak HTTP/3. onlyHTTP3 is true if they speak nothing else.
	http3     string
	onlyHTTP3 bool

	// usual is the default algorithm; defaultAlgorithm if empty.
	usual string
	// resident is true if the command keeps running: a link's device may appear later.
	resident bool
	// rescues is true if the command runs all algorithms with rescue.
	rescues bool
}

// register adds the flags with their defaults.
func (f *engineFlags) register(flags *pflag.FlagSet) {
	usual := schedule.Defaults
	f.upperLimit, f.first, f.segment = usual.UpperLimit, usual.FirstRequests, usual.Segment
	f.buffer = schedule.PlayerBuffer
	flags.StringArrayVar(&f.links, "link", nil, "use the device under this name, as NAME=DEVICE or DEVICE (repeatable; "+namesOf(func(a schedule.Algorithm) bool { return a.OneLink })+" takes one)")
	flags.StringVar(&f.algorithm, "algorithm", cmp.Or(f.usual, defaultAlgorithm), "how to split the work: "+schedule.List(schedule.Algorithms)+" (see multilink algorithms)")
	flags.StringArrayVar(&f.bandwidths, "bandwidth", nil, "B of "+taking("bandwidth")+", as NAME=RATE such as wifi=80Mbit/s (repeatable; default: highest throughput seen)")
	flags.Var(&f.upperLimit, "upper-limit", "U of "+taking("upper-limit"))
	flags.Float64Var(&f.padding, "padding", usual.Padding, "f of "+taking("padding")+", above 0 to 1")
	flags.BoolVar(&f.plain, "plain", false, taking("padding")+" without padding")
	flags.Var(&f.first, "first-request", "sum of the first requests of "+taking("first-request")+", split equally over the links")
	flags.IntVar(&f.connections, "connections", usual.Connections, "most connections of a link to the server, over HTTP/1.1 three times as many, of "+taking("connections"))
	flags.Float64Var(&f.overlap, "overlap", usual.Overlap, "part of a link's newest request after which the next is sent, above 0 to 1")
	flags.Var(&f.segment, "segment", "size of the segments of "+taking("segment"))
	flags.StringVar(&f.playback, "playback-rate", "", "rate at which the file is played while it arrives, such as 5.4Mbit/s, for "+taking("playback-rate")+" (default: it is not played)")
	flags.Var(&f.buffer, "playback-buffer", "what is buffered before the playback begins, for "+taking("playback-buffer"))
	flags.StringVar(&f.model, "energy-model", "", "YAML file that says what the links draw, for "+taking("energy-model")+" (see profiles/energy)")
	flags.StringVar(&f.objective, "objective", objectiveTime, "what "+defaultAlgorithm+" aims at: "+objectiveTime+", or "+objectiveEnergy+", the least energy in the time that --slowdown allows, which needs --energy-model")
	flags.Float64Var(&f.slowdown, "slowdown", schedule.UsualSlowdown, "how much longer than over all links a download may take to save energy, as a part of that time, for "+taking("slowdown"))
	flags.DurationVar(&f.window, "window", usual.Window, "time over which throughput is averaged")
	flags.DurationVar(&f.giveUp, "give-up", 5*time.Minute, "time without a new byte from any link after which the download fails (0: never)")
	flags.StringVar(&f.lowest, "lowest-rate", "200bit/s", "least rate of all links together over the time of --give-up; below it the download fails (0: none)")
	flags.StringVar(&f.wireless, "wireless-file", link.WirelessFile, "signal strengths in the format of /proc/net/wireless, which tell rescue when a link is worth another try")
	flags.StringArrayVar(&f.dns, "dns", nil, "name server to ask through a link, as NAME=ADDRESS, or through all, as ADDRESS (repeatable; default: those of /etc/resolv.conf; one on this machine answers over whatever link it uses)")
	flags.BoolVar(&f.legacyTLS, "tls-legacy", false, "also take what is not safe any more: TLS 1.0 and 1.1, RSA key exchange, and CBC")
	flags.StringVar(&f.minTLS, "min-tls-version", "1.2", "oldest TLS of servers: 1.2 or 1.3")
	flags.BoolVarP(&f.ipv4, "ipv4", "4", false, "use IPv4 addresses only")
	flags.BoolVarP(&f.ipv6, "ipv6", "6", false, "use IPv6 addresses only")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file with the only authorities to trust (default: the system's)")
}

// registerHTTP3 adds the flag for HTTP/3 where it is offered.
func (f *engineFlags) registerHTTP3(flags *pflag.FlagSet) {
	flags.StringVar(&f.http3, "http3", http3No, "speak HTTP/3, over QUIC: "+http3Offered+", on further connections to a server that offers it; "+http3DNS+", also on the first where the HTTPS record of the name server offers it; or "+http3No+" (not for algorithms as published)")
	flags.Lookup("http3").NoOptDefVal = http3Offered
}

// registerOnlyHTTP3 adds the flag for HTTP/3 alone.
func (f *engineFlags) registerOnlyHTTP3(flags *pflag.FlagSet) {
	flags.BoolVar(&f.onlyHTTP3, "http3-only", false, "speak HTTP/3 alone, over QUIC")
}

// taking returns the names of the algorithms that depend on a flag.
func taking(option string) string {
	return namesOf(func(a schedule.Algorithm) bool { return a.Takes(option) })
}

// namesOf returns the names of the algorithms for which fit is true.
func namesOf(fit func(schedule.Algorithm) bool) string {
	var names []string
	for _, a := range schedule.Algorithms {
		if fit(a) {
			names = append(names, a.Name)
		}
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}

// options checks the flags. flags tells which of them were given.
func (f *engineFlags) options(flags *pflag.FlagSet) (o download.Options, err error) {
	if f.plain && flags.Changed("padding") {
		return o, invalid("plain", "", "it and --padding exclude each other: plain alg3 has no padding")
	}
	if !(f.overlap > 0 && f.overlap <= 1) {
		return o, invalid("overlap", f.overlap, "allowed is above 0 to 1")
	}
	if !(f.padding > 0 && f.padding <= 1) {
		return o, invalid("padding", f.padding, "allowed is above 0 to 1")
	}
	if f.window <= 0 {
		return o, invalid("window", f.window, "allowed are times above 0 such as 1s")
	}
	if f.connections < 1 || f.connections > mostConnections {
		return o, invalid("connections", f.connections, "allowed is 1 to %d", mostConnections)
	}
	if f.giveUp < 0 {
		return o, invalid("give-up", f.giveUp, "allowed are times such as 5m, and 0")
	}
	if !(f.slowdown >= 0 && f.slowdown <= mostSlowdown) {
		return o, invalid("slowdown", f.slowdown, "allowed is 0 to %d", mostSlowdown)
	}
	switch f.objective {
	case objectiveTime:
	case objectiveEnergy:
		if f.algorithm != defaultAlgorithm && f.algorithm != energySaving {
			return o, invalid("objective", f.objective, "it is for the algorithm %s, not %s", defaultAlgorithm, f.algorithm)
		}
		f.algorithm = energySaving
	default:
		return o, invalid("objective", f.objective, "allowed are %s and %s", objectiveTime, objectiveEnergy)
	}
	algorithm, err := schedule.Find(f.algorithm)
	if err != nil {
		return o, invalid("algorithm", f.algorithm, "%w", err)
	}
	f.algorithm = algorithm.Name
	o.Overlap, o.Window, o.GiveUp = f.overlap, f.window, f.giveUp
	if f.lowest != "0" {
		if o.LowestRate, err = quantity.ParseRate(f.lowest); err != nil {
			return o, invalid("lowest-rate", f.lowest, "%w, and 0", err)
		}
	}
	if o.Links, err = f.parseLinks(algorithm.Rescue); err != nil {
		return o, err
	}
	parameters := schedule.Parameters{
		UpperLimit: f.upperLimit, FirstRequests: f.first, Padding: f.factor(), Segment: f.segment,
		Slowdown: f.slowdown,
	}
	if parameters.Player, err = f.player(); err != nil {
		return o, err
	}
	if parameters.Model, err = f.energyModel(o.Links, algorithm.Kinds); err != nil {
		return o, err
	}
	for _, needed := range algorithm.Needs {
		if !flags.Changed(needed) {
			return o, invalid("algorithm", f.algorithm, "it needs --%s", needed)
		}
	}
	o.Scheduler = algorithm.Scheduler(parameters)
	if algorithm.OneLink && len(o.Links) > 1 {
		return o, invalid("algorithm", f.algorithm, "it uses one --link, not %d", len(o.Links))
	}
	if algorithm.Takes("connections") {
		o.Connections = &transfer.Connections{Most: f.connections}
	}
	o.Rescue = algorithm.Rescue
	if err = f.parseBandwidths(o.Links); err != nil {
		return o, err
	}
	o.Hellos = new(transport.Hellos)
	if o.TLS, err = tlsConfig(f.caFile); err != nil {
		return o, err
	}
	switch strings.TrimPrefix(f.minTLS, "TLSv") { // aria2 writes TLSv1.2.
	case "1.2": // Go's default.
		if f.legacyTLS {
			transport.LegacyTLS(o.TLS)
		}
	case "1.3":
		if f.legacyTLS {
			return o, invalid("tls-legacy", "true", "--min-tls-version 1.3 excludes it")
		}
		o.TLS.MinVersion = tls.VersionTLS13
	default:
		return o, invalid("min-tls-version", f.minTLS, "allowed are 1.2 and 1.3")
	}
	if !slices.Contains([]string{"", http3No, http3Offered, http3DNS}, f.http3) {
		return o, invalid("http3", f.http3, "allowed are %s, %s and %s", http3Offered, http3DNS, http3No)
	}
	if f.http3 == http3Offered || f.http3 == http3DNS || f.onlyHTTP3 {
		if !algorithm.Rescue && !f.rescues {
			return o, invalid("algorithm", f.algorithm, "it is as published, over HTTP/2: --http3 and --http3-only are for others")
		}
		o.Hellos.HTTP3 = &transport.HTTP3{Only: f.onlyHTTP3}
	}
	pacer := link.NewPacer()
	for i, l := range o.Links {
		dial := l.Dial
		if o.Hellos.HTTP3 != nil {
			if f.http3 != http3DNS {
				l.Service = nil
			}
			dial = o.Hellos.HTTP3.Dialer(l.Name, l.Packets, l.Service, dial, o.TLS)
		}
		o.Links[i].Dial = pacer.Dialer(l.Name, dial)
	}
	return o, nil
}

// player returns the player of the file, if there is one.
func (f *engineFlags) player() (p schedule.Player, err error) {
	if f.playback == "" {
		return p, nil
	}
	p.Buffer = f.buffer
	if p.Rate, err = quantity.ParseRate(f.playback); err != nil {
		return p, invalid("playback-rate", f.playback, "%w", err)
	}
	return p, nil
}

// energyModel reads the energy model, if given. The model must have the kind of each link, and
// the kinds that the algorithm needs.
func (f *engineFlags) energyModel(links []transfer.Link, kinds []energy.Kind) (*energy.Model, error) {
	if f.model == "" {
		return nil, nil
	}
	model, err := energy.Read(f.model)
	if err != nil {
		return nil, invalid("energy-model", "", "%w", err)
	}
	for _, kind := range kinds {
		if model.Radios[kind] == nil {
			return nil, invalid("energy-model", f.model, "it says nothing of %s, which %s needs", kind, f.algorithm)
		}
	}
	for _, l := range links {
		switch kind := energy.KindOf(l.Name, l.Device); {
		case kind == "":
			return nil, invalid("link", l.Name+"="+l.Device, "with --energy-model %s", energy.KindsWanted())
		case len(kinds) > 0 && !slices.Contains(kinds, kind):
			return nil, invalid("algorithm", f.algorithm, "it decides between links of the kinds %v; link %s is of kind %s", kinds, l.Name, kind)
		case model.Radios[kind] == nil:
			return nil, invalid("energy-model", f.model, "it says nothing of %s, which link %s is", kind, l.Name)
		}
	}
	return model, nil
}

// startEvent records the options on which the algorithm depends.
func (f *engineFlags) startEvent(o download.Options) *rundir.Start {
	start := &rundir.Start{
		Algorithm: f.algorithm,
		Options: map[string]any{
			"first_request_bytes": int64(f.first),
			"upper_limit_bytes":   int64(f.upperLimit),
			"padding":             f.factor(),
			"overlap":             f.overlap,
			"window_ns":           f.window.Nanoseconds(),
			"rescue":              o.Rescue,
			"bandwidth_bps":       map[string]float64{},
		},
	}
	if o.Connections != nil {
		start.Options["connections"] = o.Connections.Most
	}
	if algorithm, err := schedule.Find(f.algorithm); err == nil {
		if algorithm.Takes("segment") {
			start.Options["segment_bytes"] = int64(f.segment)
		}
		if algorithm.Takes("playback-rate") {
			start.Options["playback_rate"] = f.playback
		}
		if algorithm.Takes("energy-model") {
			start.Options["energy_model"] = f.model
		}
		if algorithm.Takes("slowdown") {
			start.Options["slowdown"] = f.slowdown
		}
	}
	for _, l := range o.Links {
		start.Links = append(start.Links, rundir.LinkDevice{Link: l.Name, Device: l.Device})
		if l.Bandwidth > 0 {
			start.Options["bandwidth_bps"].(map[string]float64)[l.Name] = float64(l.Bandwidth)
		}
	}
	return start
}

// factor returns alg3's f. With --plain it is 1, which gives the plain algorithm.
func (f *engineFlags) factor() float64 {
	if f.plain {
		return 1
	}
	return f.padding
}
