package schedule

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// Algorithm is a row of the table that multilink, linklab and the documents share. The
// code of an algorithm is in another file of this package.
type Algorithm struct {
	// Name stands in commands, run files and metrics. Alias describes the algorithm;
	// commands accept it, too.
	Name  string `json:"name"`
	Alias string `json:"alias"`
	// About says how many bytes a link requests next.
	About string `json:"about"`
	// From lists the inputs of a decision (thesis table 4.1). Wins says where the
	// algorithm does well, or its purpose.
	From []string `json:"-"`
	Wins string   `json:"-"`
	// Source is the publication.
	Source string `json:"source"`
	// Options are the flags of multilink that change its decisions. An algorithm with rescue
	// also depends on --bandwidth, --window and --overlap: they change the
	// estimates of links and the time of the next request.
	Options []string `json:"options"`
	// Needs are those of Options that are required.
	Needs []string `json:"needs"`
	// Kinds are the kinds of links that it needs. Without entries any links will do.
	Kinds []energy.Kind `json:"kinds,omitempty"`
	// OneLink is true if it uses only one link.
	OneLink bool `json:"one_link"`
	// Rescue is true if it makes up for links that fail or fall behind. All others are as published: the
	// first failure of a link ends the download.
	Rescue bool `json:"rescue"`
	// Compared is true for the algorithms in the thesis' tables. linklab's word
	// "published" stands for these.
	Compared bool `json:"compared"`
	// Uploads is true if it can also divide an upload: it has no Plan.
	Uploads bool `json:"uploads"`
	// Scheduler returns the algorithm with these parameters.
	Scheduler func(Parameters) Scheduler `json:"-"`
}

// Parameters are the settings of the algorithms that users can change.
type Parameters struct {
	// UpperLimit is U of Alg1. FirstRequests is the sum of the first requests of all
	// links.
	UpperLimit, FirstRequests quantity.Bytes
	// Padding is f of Alg3.
	Padding float64
	// Segment is the size of GreenBag's segments.
	Segment quantity.Bytes
	// Player plays the payload. The zero value means no player.
	Player Player
	// Model is the energy model of the radios, nil if unknown.
	Model *energy.Model
	// Slowdown is that of EnergySaving.
	Slowdown float64
}

// Settings holds the parameters of the algorithms, and the settings that all of them
// share.
type Settings struct {
	// See Parameters.
	UpperLimit    quantity.Bytes `json:"upper_limit_bytes"`
	Padding       float64        `json:"padding"`
	FirstRequests quantity.Bytes `json:"first_request_bytes"`
	// Overlap is the part of a link's newest request that arrives before the next request
	// is sent. Window is the time over which throughput is averaged.
	Overlap float64       `json:"overlap"`
	Window  time.Duration `json:"window_ns"`
	// Connections is the largest number of connections of a link.
	Connections int `json:"connections"`
	// Segment is the size of GreenBag's segments.
	Segment quantity.Bytes `json:"segment_bytes"`
}

// Defaults are the default settings of multilink and of linklab's scenarios.
//
// Thesis 4.2.2 gives an overlap of 60 %. f (0.3 in an example of thesis 4.3.5), Window
// and U are ours: 1.2 MB reproduces the results of the thesis best over all its
// scenarios. The first requests together are about as large as one round of alg1. So
// every link starts with requests of their later size, and its first estimate covers
// several round trips. GreenBag's segments have the best size of its emulation, 500 KB
// of 1024 B (GreenBag V-A2).
var Defaults = Settings{
	UpperLimit: 1_200_000, Padding: 0.1, FirstRequests: 1_000_000,
	Overlap: 0.6, Window: time.Second, Connections: 16, Segment: 500 << 10,
}

func init() {
	for i := range Algorithms {
		_, plans := Algorithms[i].Scheduler(Parameters{}).(Planner)
		Algorithms[i].Uploads = !plans
	}
}

// Algorithms is the table of all algorithms. linklab and the documents read
// algorithms.json, which holds this table and Defaults. The command "go test
// ./internal/schedule -update" writes that file.
var Algorithms = []Algorithm{
	{
		Name: "single", About: "everything, on one link", Source: "thesis 4.3.1",
		From:    []string{"nothing"},
		Wins:    "one link, or only one may be used",
		Options: []string{}, Needs: []string{}, OneLink: true, Compared: true,
		Scheduler: func(Parameters) Scheduler { return Single{} },
	},
	{
		Name: "naive", About: "payload / n, once", Source: "thesis 4.3.2",
		From:    []string{"payload", "number of links"},
		Wins:    "links of equal and constant rate",
		Options: []string{}, Needs: []string{}, Compared: true,
		Scheduler: func(Parameters) Scheduler { return Naive{} },
	},
	{
		Name: "alg1", Alias: "static-limit", About: "U · r/Σr. U is `--upper-limit`", Source: "thesis 4.3.3",
		From:    []string{"throughput"},
		Wins:    "steady links. Where one link is very slow, the fast one alone is faster",
		Options: []string{"upper-limit", "first-request", "overlap", "window"}, Needs: []string{}, Compared: true,
		Scheduler: func(p Parameters) Scheduler {
			return Alg1{UpperLimit: p.UpperLimit, FirstRequests: p.FirstRequests}
		},
	},
	{
		Name: "alg2", Alias: "dynamic-limit", About: "D · r/Σr. D is payload/n · Σr/ΣB", Source: "thesis 4.3.4",
		From:    []string{"throughput", "bandwidth", "payload", "number of links"},
		Wins:    "large files on steady links of known bandwidth: few requests",
		Options: []string{"bandwidth", "first-request", "overlap", "window"}, Needs: []string{}, Compared: true,
		Scheduler: func(p Parameters) Scheduler { return Alg2{FirstRequests: p.FirstRequests} },
	},
	{
		Name: "alg3", Alias: "link-bdp", About: "BDP + f · (bytes of alg2 − BDP), at least BDP. f is `--padding`, and 1 with `--plain`", Source: "thesis 4.3.5",
		From:    []string{"throughput", "bandwidth", "payload", "number of links", "round trip time"},
		Wins:    "links that change; the fastest of the thesis",
		Options: []string{"bandwidth", "padding", "first-request", "overlap", "window"}, Needs: []string{}, Compared: true,
		Scheduler: func(p Parameters) Scheduler {
			return Alg3{FirstRequests: p.FirstRequests, Padding: p.Padding}
		},
	},
	{
		Name: "adaptive", Alias: "", About: "0.25 s of work for each connection. A link gets more connections, up to `--connections`, while they make it faster and no queue forms", Source: "",
		From:    []string{"throughput of each connection", "round trip time and its minimum", "bytes received", "bytes outstanding on each link"},
		Wins:    "all links, steady ones too. It gains most with random loss, long round trips, small files, links that come and go",
		Options: []string{"connections"}, Needs: []string{}, Rescue: true,
		Scheduler: func(Parameters) Scheduler { return Adaptive{} },
	},
	{
		Name: "adaptive-energy", About: "1 s of work, 0.25 s before a player. It uses the links that finish within `--slowdown` for the least energy", Source: "",
		From:    []string{"throughput", "energy model", "bytes left", "time that all links would need", "time to play"},
		Wins:    "least energy within a stated time",
		Options: []string{"energy-model", "slowdown", "playback-rate", "playback-buffer"}, Needs: []string{"energy-model"}, Rescue: true,
		Scheduler: func(p Parameters) Scheduler {
			return EnergySaving{Model: p.Model, Slowdown: p.Slowdown, Player: p.Player}
		},
	},
	{
		Name: "alg1-limited", About: "as alg1, with r/Σr at least 0.1", Source: "thesis 4.3.3, the optional limit",
		From:    []string{"throughput"},
		Wins:    "one link much slower than the others",
		Options: []string{"upper-limit", "first-request", "overlap", "window"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler {
			return Alg1Limited{Alg1{UpperLimit: p.UpperLimit, FirstRequests: p.FirstRequests}}
		},
	},
	{
		Name: "alg2-limited", About: "as alg2, with D at most a twentieth of the payload", Source: "thesis 4.3.4, the optional limit",
		From:    []string{"throughput", "bandwidth", "payload", "number of links"},
		Wins:    "as alg2, for rates that change: smaller requests",
		Options: []string{"bandwidth", "first-request", "overlap", "window"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler { return Alg2Limited{Alg2{FirstRequests: p.FirstRequests}} },
	},
	{
		Name: "alg3-history", About: "as alg3, with f · (1 − v). v is the coefficient of variation of r so far", Source: "thesis 4.3.5, f by history",
		From:    []string{"throughput", "its variation so far", "bandwidth", "payload", "number of links", "round trip time"},
		Wins:    "as alg3, for rates that change",
		Options: []string{"bandwidth", "padding", "first-request", "overlap", "window"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler {
			return Alg3History{Alg3{FirstRequests: p.FirstRequests, Padding: p.Padding}}
		},
	},
	{
		Name: "alg3-static", About: "as alg3. A link below 800 kbit/s loses its requests and is not used again", Source: "thesis 8.2.4, static check of slow links",
		From:    []string{"as alg3", "a fixed rate"},
		Wins:    "a link that does harm. It also drops slow links that would help",
		Options: []string{"bandwidth", "padding", "first-request", "overlap", "window"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler {
			return SlowLinks{Scheduler: Alg3{FirstRequests: p.FirstRequests, Padding: p.Padding}}
		},
	},
	{
		Name: "alg3-dynamic", About: "as alg3-static, for a link below 0.2 · Σr/n", Source: "thesis 8.2.4, dynamic check of slow links",
		From:    []string{"as alg3", "the mean of all links"},
		Wins:    "the same beside fast links",
		Options: []string{"bandwidth", "padding", "first-request", "overlap", "window"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler {
			return SlowLinks{Scheduler: Alg3{FirstRequests: p.FirstRequests, Padding: p.Padding}, Dynamic: true}
		},
	},
	{
		Name: "gb-p", About: "its part of a segment (`--segment`), so that all links finish together. Another link helps with a part that would be late", Source: "GreenBag IV.B, GB-P",
		From:    []string{"goodput of the current part", "time to play"},
		Wins:    "video that plays during the download",
		Options: []string{"segment", "playback-rate", "playback-buffer"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler { return GreenBag{SegmentSize: p.Segment, Player: p.Player} },
	},
	{
		Name: "gb-e", About: "as gb-p, but over one link alone if that is fast enough and needs less energy", Source: "GreenBag IV.B, GB-E",
		From:    []string{"as gb-p", "energy model"},
		Wins:    "the same on a battery",
		Options: []string{"segment", "playback-rate", "playback-buffer", "energy-model"}, Needs: []string{"playback-rate", "energy-model"},
		Scheduler: func(p Parameters) Scheduler {
			return GreenBag{SegmentSize: p.Segment, Player: p.Player, Model: p.Model}
		},
	},
	{
		Name: "gb-half", About: "as gb-p, with parts of equal size", Source: "GreenBag V-A3, the fixed ratio",
		From:    []string{"nothing"},
		Wins:    "baseline of gb-p",
		Options: []string{"segment", "playback-rate", "playback-buffer"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler {
			return GreenBag{SegmentSize: p.Segment, Player: p.Player, Halves: true}
		},
	},
	{
		Name: "gb-no-recovery", About: "as gb-p, but no link helps another", Source: "GreenBag V-A4",
		From:    []string{"as gb-p"},
		Wins:    "baseline of gb-p's recovery",
		Options: []string{"segment", "playback-rate", "playback-buffer"}, Needs: []string{},
		Scheduler: func(p Parameters) Scheduler {
			return GreenBag{SegmentSize: p.Segment, Player: p.Player, NoRecovery: true}
		},
	},
	{
		Name: "emptcp-http", About: "as alg1, over Wi-Fi first. LTE joins when both together need less energy per byte", Source: "eMPTCP 3, above HTTP",
		From:    []string{"throughput", "energy model"},
		Wins:    "small files, and Wi-Fi that is good enough",
		Options: []string{"energy-model", "upper-limit", "first-request", "overlap", "window"}, Needs: []string{"energy-model"},
		Kinds: []energy.Kind{energy.Wifi, energy.LTE},
		Scheduler: func(p Parameters) Scheduler {
			return EMPTCP{Sizes: Alg1{UpperLimit: p.UpperLimit, FirstRequests: p.FirstRequests}, Model: p.Model}
		},
	},
	{
		Name: "booster", About: "1 MB, after the one before is complete. Files up to 30 MB use Wi-Fi alone", Source: "thesis 2.3.1, Samsung's Download Booster",
		From:    []string{"size of the file"},
		Wins:    "baseline of the thesis: parts of one size",
		Options: []string{}, Needs: []string{},
		Scheduler: func(Parameters) Scheduler { return Booster{} },
	},
	{
		Name: "dynsub", About: "r/Σr of each segment, which plays for 2 s", Source: "Evensen",
		From:    []string{"throughput", "playback rate"},
		Wins:    "video in segments of one duration",
		Options: []string{"playback-rate", "window"}, Needs: []string{"playback-rate"},
		Scheduler: func(p Parameters) Scheduler { return DynSub{Player: p.Player} },
	},
}

// Takes reports whether the algorithm depends on a flag.
func (a Algorithm) Takes(option string) bool { return slices.Contains(a.Options, option) }

// String returns the name, with the alias in parentheses.
func (a Algorithm) String() string {
	if a.Alias == "" {
		return a.Name
	}
	return a.Name + " (" + a.Alias + ")"
}

// Find returns the algorithm with that name or alias. The error lists all of them.
func Find(name string) (Algorithm, error) {
	for _, a := range Algorithms {
		if name != "" && (name == a.Name || name == a.Alias) {
			return a, nil
		}
	}
	return Algorithm{}, errors.New("allowed are " + List(Algorithms))
}

// List returns the names of algorithms, separated by commas.
func List(algorithms []Algorithm) string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}
