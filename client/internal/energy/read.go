package energy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/linklab/linklab/client/internal/plainfile"
)

// mostBytes is how large a file of a model may be.
const mostBytes = 64 << 10

// Read reads a model's YAML file. linklab's reference of keys
// (profiles/README.md) says what stands in one. An error has file and line,
// and says what is allowed.
func Read(path string) (*Model, error) {
	text, err := plainfile.Read(path, mostBytes)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

func parse(path string, text []byte) (*Model, error) {
	r := reader{path}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 {
		return nil, fmt.Errorf("%s: the file is empty; needed: name, device, source, links", path)
	}
	m := &Model{Radios: map[Kind]*Radio{}}
	err := r.mapping(document.Content[0], []field{
		{"name", true, r.text(&m.Name)},
		{"device", true, ignored},
		{"source", true, ignored},
		{"description", false, ignored},
		{"base", false, r.measure(&m.BaseMW, "mW", 0)},
		{"phone", false, r.measure(&m.PhoneMW, "mW", 0)},
		{"shared", false, r.measure(&m.SharedMW, "mW", 0)},
		{"both", false, r.measure(&m.BothMW, "mW", -mostMeasure)},
		{"processor", false, r.measure(new(float64), "mW", 0)},
		{"links", true, func(n *yaml.Node) error { return r.radios(n, m.Radios) }},
		{"fitted_to", false, ignored},
	})
	if err != nil {
		return nil, err
	}
	for kind, radio := range m.Radios {
		if m.BothMW+radio.ActiveMW < 0 {
			return nil, fmt.Errorf("%s: both: a further link of %s would draw less than nothing; allowed: at least -active", path, kind)
		}
	}
	return m, nil
}

// reader reads nodes of a file.
type reader struct{ path string }

// field is a key, and what reads its value.
type field struct {
	key    string
	needed bool
	read   func(*yaml.Node) error
}

// ignored is for what the client makes no use of.
func ignored(*yaml.Node) error { return nil }

func (r reader) errorf(n *yaml.Node, format string, arguments ...any) error {
	return fmt.Errorf("%s:%d: %w", r.path, n.Line, fmt.Errorf(format, arguments...))
}

// mapping reads the fields of a mapping, each at most once, and no others.
func (r reader) mapping(n *yaml.Node, fields []field) error {
	var allowed []string
	for _, f := range fields {
		allowed = append(allowed, f.key)
	}
	if n.Kind != yaml.MappingNode {
		return r.errorf(n, "KEY: VALUE lines are needed; allowed: %s", strings.Join(allowed, ", "))
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.Index(allowed, key.Value)
		switch {
		case at < 0:
			return r.errorf(key, "there is no key %q; allowed: %s", key.Value, strings.Join(allowed, ", "))
		case seen[key.Value]:
			return r.errorf(key, "%s stands twice", key.Value)
		}
		seen[key.Value] = true
		if err := fields[at].read(value); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if f.needed && !seen[f.key] {
			return r.errorf(n, "%s is missing; needed", f.key)
		}
	}
	return nil
}

func (r reader) radios(n *yaml.Node, into map[Kind]*Radio) error {
	var fields []field
	var names []string
	for _, k := range kinds() {
		names = append(names, string(k.Name))
		fields = append(fields, field{string(k.Name), false, func(n *yaml.Node) error {
			radio := &Radio{}
			into[k.Name] = radio
			return r.mapping(n, []field{
				{"active", false, r.measure(&radio.ActiveMW, "mW", 0)},
				{"down", false, r.measure(&radio.DownMJ, "mJ/Mbit", 0)},
				{"up", false, r.measure(&radio.UpMJ, "mJ/Mbit", 0)},
				{"idle", false, r.measure(&radio.IdleMW, "mW", 0)},
				{"promotion", false, r.state(&radio.Promotion)},
				{"tail", false, r.states(&radio.Tail)},
			})
		}})
	}
	if err := r.mapping(n, fields); err != nil {
		return err
	}
	if len(into) == 0 {
		return r.errorf(n, "links: says nothing of any link; needed: one or more of %s", strings.Join(names, ", "))
	}
	return nil
}

func (r reader) states(into *[]State) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return r.errorf(n, "a list of states is needed, such as [{power: 1060 mW, time: 11 s}]")
		}
		for _, one := range n.Content {
			var s State
			if err := r.state(&s)(one); err != nil {
				return err
			}
			*into = append(*into, s)
		}
		return nil
	}
}

func (r reader) state(into *State) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		return r.mapping(n, []field{
			{"power", true, r.measure(&into.PowerMW, "mW", 0)},
			{"time", true, r.duration(&into.Time)},
			{"state", false, ignored},
		})
	}
}

func (r reader) text(into *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return r.errorf(n, "a text is needed")
		}
		*into = n.Value
		return nil
	}
}

// mostMeasure is the most that a power may be, and an energy per megabit.
const mostMeasure = 100_000

var errNoMeasure = errors.New("no number with this unit")

func (r reader) measure(into *float64, unit string, least float64) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		value, err := number(n, unit)
		if err != nil || value < least || value > mostMeasure {
			return r.errorf(n, "%q is no measure; allowed: %g %s to %d %s", n.Value, least, unit, mostMeasure, unit)
		}
		*into = value
		return nil
	}
}

// durations are the units of times, in seconds.
var durations = []struct {
	unit    string
	seconds float64
}{{"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"s", 1}}

// mostTime is how long a state may last.
const mostTime = 10 * time.Minute

func (r reader) duration(into *time.Duration) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		for _, d := range durations {
			value, err := number(n, d.unit)
			if err != nil {
				continue
			}
			seconds := value * d.seconds
			if seconds < 0 || seconds > mostTime.Seconds() {
				break
			}
			*into = time.Duration(seconds*1e9 + 0.5)
			return nil
		}
		return r.errorf(n, "%q is no time; allowed: 0 s to 10 min, such as 260 ms", n.Value)
	}
}

// number is a number before a unit.
func number(n *yaml.Node, unit string) (float64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(n.Value), unit)
	digits = strings.TrimSpace(digits)
	if !ok || n.Kind != yaml.ScalarNode || strings.Trim(digits, "+-.0123456789") != "" {
		return 0, errNoMeasure
	}
	return strconv.ParseFloat(digits, 64)
}
