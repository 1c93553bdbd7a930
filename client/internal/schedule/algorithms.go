package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Algorithm is a row of the table that multilink, linklab and the documents
// share. The algorithm itself is a file of this package.
type Algorithm struct {
	// Name is what commands, run files and metrics call it, and Alias says
	// what it does; commands take both.
	Name  string `json:"name"`
	Alias string `json:"alias"`
	// About is how many bytes a link requests next.
	About string `json:"about"`
	// Source is where it is published.
	Source string `json:"source"`
	// Options are the flags of multilink on which it depends.
	Options []string `json:"options"`
	// OneLink says that it uses one link only.
	OneLink bool `json:"one_link"`
	// Rescue says that it is a part of rescue, and nothing without it.
	Rescue bool `json:"rescue"`
	// Scheduler is the algorithm with these parameters.
	Scheduler func(Parameters) Scheduler `json:"-"`
}

// Parameters are what users may set of algorithms.
type Parameters struct {
	// UpperLimit is U of Alg1, and FirstRequests the sum of the first
	// requests of all links.
	UpperLimit, FirstRequests quantity.Bytes
	// Padding is f of Alg3.
	Padding float64
}

// Settings are the parameters of the algorithms, and those of how requests
// follow each other, which all algorithms share.
type Settings struct {
	// See Parameters.
	UpperLimit    quantity.Bytes `json:"upper_limit_bytes"`
	Padding       float64        `json:"padding"`
	FirstRequests quantity.Bytes `json:"first_request_bytes"`
	// Overlap is the part of a link's newest request after which the next is
	// sent, and Window the time over which throughput is averaged.
	Overlap float64       `json:"overlap"`
	Window  time.Duration `json:"window_ns"`
	// Connections is how many a link may have.
	Connections int `json:"connections"`
}

// Defaults are the settings of multilink and of linklab's scenarios where
// nothing else is said. Thesis 4.3 gives f = 10 %, an overlap of 60 % and a
// window of 1 s. It does not give U (thesis 4.3.3): 1.2 MB reproduces its results
// best over all its scenarios. The first requests together are about as large
// as one round of alg1: every link starts with requests of the size that it
// would get later, and its first estimate covers several round trips.
var Defaults = Settings{
	UpperLimit: 1_200_000, Padding: 0.1, FirstRequests: 1_000_000,
	Overlap: 0.6, Window: time.Second, Connections: 16,
}

// Algorithms is the table of all. What linklab and the documents read of it,
// and of Defaults, is algorithms.json, which "go test ./internal/schedule
// -update" writes.
var Algorithms = []Algorithm{
	{
		Name: "single", About: "everything, on one link", Source: "thesis 4.3.1",
		Options: []string{}, OneLink: true,
		Scheduler: func(Parameters) Scheduler { return Single{} },
	},
	{
		Name: "naive", About: "payload / n, once", Source: "thesis 4.3.2",
		Options:   []string{},
		Scheduler: func(Parameters) Scheduler { return Naive{} },
	},
	{
		Name: "alg1", Alias: "static-limit", About: "U · r/Σr, with U from `--upper-limit`", Source: "thesis 4.3.3",
		Options: []string{"upper-limit", "first-request", "overlap", "window"},
		Scheduler: func(p Parameters) Scheduler {
			return Alg1{UpperLimit: p.UpperLimit, FirstRequests: p.FirstRequests}
		},
	},
	{
		Name: "alg2", Alias: "dynamic-limit", About: "D · r/Σr, with D = payload/n · Σr/ΣB", Source: "thesis 4.3.4",
		Options:   []string{"bandwidth", "first-request", "overlap", "window"},
		Scheduler: func(p Parameters) Scheduler { return Alg2{FirstRequests: p.FirstRequests} },
	},
	{
		Name: "alg3", Alias: "link-bdp", About: "BDP + f · (what alg2 says − BDP), with f from `--padding`; BDP if alg2 says less. `--plain` is f = 1", Source: "thesis 4.3.5",
		Options: []string{"bandwidth", "padding", "first-request", "overlap", "window"},
		Scheduler: func(p Parameters) Scheduler {
			return Alg3{FirstRequests: p.FirstRequests, Padding: p.Padding}
		},
	},
	{
		Name: "adaptive", Alias: "", About: "what each of its connections delivers in a quarter of a second; a link has as many connections, up to `--connections`, as bring more while no queue forms", Source: "",
		Options: []string{"connections"}, Rescue: true,
		Scheduler: func(Parameters) Scheduler { return Adaptive{} },
	},
}

// Takes reports whether the algorithm depends on a flag.
func (a Algorithm) Takes(option string) bool { return slices.Contains(a.Options, option) }

// String is the name, and the alias behind it.
func (a Algorithm) String() string {
	if a.Alias == "" {
		return a.Name
	}
	return a.Name + " (" + a.Alias + ")"
}

// Find is the algorithm of that name or alias. The error says which there are.
func Find(name string) (Algorithm, error) {
	var known []string
	for _, a := range Algorithms {
		if name != "" && (name == a.Name || name == a.Alias) {
			return a, nil
		}
		known = append(known, a.Name)
		if a.Alias != "" {
			known = append(known, a.Alias)
		}
	}
	meant := ""
	if close := closest(name, known); len(close) > 0 {
		meant = "did you mean " + strings.Join(close, " or ") + "? "
	}
	return Algorithm{}, fmt.Errorf("%sallowed are %s", meant, List(Algorithms))
}

// List names algorithms, with commas between.
func List(algorithms []Algorithm) string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}

// closest are those of known that differ from the text in the fewest letters,
// if that is a third of them at most.
func closest(text string, known []string) (found []string) {
	least := 1 + len(text)/3
	for _, name := range known {
		distance := editDistance(text, name)
		if distance < least {
			least, found = distance, nil
		}
		if distance == least {
			found = append(found, name)
		}
	}
	return found
}

// editDistance is the number of letters to insert, delete or replace
// (Levenshtein 1966).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
