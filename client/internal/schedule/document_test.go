package schedule

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

// The document's tables, between these lines, are made from Algorithms and constants.
const (
	document   = "../../../emulator/handbook/reference/algorithms.md"
	tableBegin = "<!-- made by go test ./internal/schedule -update -->\n"
	tableEnd   = "<!-- end of what is made -->\n"
)

// usual returns the default of a flag, "" if it stands for no constant.
func usual(option string) string {
	switch option {
	case "upper-limit":
		return "U = " + bytesText(float64(Defaults.UpperLimit))
	case "first-request":
		return "first requests " + bytesText(float64(Defaults.FirstRequests))
	case "padding":
		return fmt.Sprintf("f = %g", Defaults.Padding)
	case "overlap":
		return fmt.Sprintf("overlap %g", Defaults.Overlap)
	case "window":
		return "window " + timeText(Defaults.Window)
	case "connections":
		return fmt.Sprintf("at most %d connections of a link", Defaults.Connections)
	case "slowdown":
		return fmt.Sprintf("slowdown %g", UsualSlowdown)
	case "segment":
		return "segments of " + bytesText(float64(Defaults.Segment))
	case "playback-buffer":
		return "buffer " + bytesText(float64(PlayerBuffer))
	}
	return ""
}

func row(a Algorithm) string {
	var constants []string
	for _, option := range a.Options {
		if text := usual(option); text != "" {
			constants = append(constants, text)
		}
	}
	name := "`" + a.Name + "`"
	if a.Alias != "" {
		name += ", `" + a.Alias + "`"
	}
	source := a.Source
	if source == "" {
		source = "ours"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", name, a.About, strings.Join(a.From, "; "), strings.Join(constants, "; "), source, a.Wins)
}

// chosen is a constant of an algorithm. Its value is that of the Go constant with this name,
// or value if the file contains the expression.
type chosen struct {
	of, what string
	// name is the Go constant, with its package unless that is schedule. unit is "s", "B",
	// "bit/s", or text that follows the number.
	name, unit string
	// value describes the expression in the file.
	value, file, expression string
	from                    string
}

const (
	thesis   = "alg1, alg2, alg3"
	greenbag = "gb-…"
	http     = "emptcp-http"
	saving   = "adaptive-energy"
	rescued  = "rescue"
	notSaid  = "not published"
)

var constants = []chosen{
	{of: "all", what: "a full TCP segment", name: "SegmentSize", unit: "B", from: "RFC 791, 9293, 7323"},
	{of: "all", what: "initial TCP window", name: "initialWindow", unit: "B", from: "RFC 6928"},
	{of: thesis, what: "smallest request", name: "MinimumRequest", unit: "B", from: "one frame of HTTP/2"},
	{of: "alg1-limited", what: "smallest share of a link", name: "leastPart", from: notSaid},
	{of: "alg2-limited", what: "largest D, relative to the payload", name: "mostPart", from: notSaid},
	{of: "alg3-static, rescue", what: "rate below which a link is slow", name: "slowRate", unit: "bit/s", from: "thesis 8.2.4"},
	{of: "alg3-dynamic, rescue", what: "the same, relative to the mean of all links", name: "slowPart", from: "thesis 8.2.4"},
	{of: "alg3-static, alg3-dynamic", what: "check interval", name: "slowLinkPeriod", unit: "s"},

	{of: "adaptive", what: "connections of a link at the start", name: "startConnections", from: "compared; browsers do so over HTTP/1.1"},
	{of: "adaptive", what: "connections over HTTP/1.1 in place of one over HTTP/2", name: "transport.http1Connections"},
	{of: "adaptive", what: "first request of a connection, before the size is known, and second one", name: "OpeningOrder", unit: "B", from: "compared"},
	{of: "adaptive", what: "smallest later request, largest of a link that failed", name: "FirstOrder", unit: "B", from: "compared"},
	{of: "adaptive", what: "work per request, at most of a hedged one", name: "OrderTime", unit: "s"},
	{of: "adaptive", what: "largest request", value: "64 KiB and twice the bytes received", file: "adaptive.go", expression: "return FirstOrder + 2*arrived", from: "TCP doubles its window in a round trip"},
	{of: "adaptive", what: "smallest request of a slow link, for a reader in order", name: "MinimumRequest", unit: "B", from: "one frame of HTTP/2"},
	{of: "adaptive", what: "bytes requested ahead", name: "Ahead", unit: "times what a connection delivers in its delay", from: "compared for energy"},
	{of: "adaptive", what: "longest delay that counts for them", name: "transfer.MostFirstByte", unit: "times the delay without a queue"},
	{of: "adaptive", what: "bytes requested ahead in slow start, at most", value: "what the link carries in 2 round trips", file: "adaptive.go", expression: "(2*most).Over(trip)"},
	{of: "adaptive", what: "assumed rate of a link in slow start", name: "asymmetry", unit: "times the rate of its handshakes", from: "compared"},
	{of: "adaptive, rescue", what: "after so long TCP shows what has changed: slow start is over, connections help, a link is silent or slow", name: "FewTrips", unit: "round trips", from: "compared"},
	{of: "adaptive", what: "shortest round", name: "leastRound", unit: "s"},
	{of: "adaptive", what: "a queue exists if the round trip exceeds its minimum by", name: "queued", unit: "of the minimum", from: "so much is requested ahead"},
	{of: "adaptive", what: "and by", name: "leastQueue", unit: "s", from: "RFC 9406 4.2"},
	{of: "adaptive", what: "doubled connections stay if the link becomes", name: "worth", unit: "times as fast"},
	{of: "adaptive", what: "pause after a doubling without effect", value: "8 rounds, then twice as many each time", file: "adaptive.go", expression: "g.lastPause = max(8, 2*g.lastPause)"},
	{of: "adaptive", what: "retry on a silent link after", value: "half a round trip, later 1/32 of its silence", file: "../transfer/dial.go", expression: "askedAgain = 32", from: "compared"},
	{of: "proxy", what: "idle connections are kept for", name: "download.keepTime", unit: "s"},

	{of: saving, what: "check interval", name: "savingPeriod", unit: "s"},
	{of: saving, what: "work per request, without a player", name: "aloneTime", unit: "s"},
	{of: saving, what: "smallest request in slow start, without a player", value: bytesText(float64(Defaults.FirstRequests)), file: "energysaving.go", expression: "max(size, Defaults.FirstRequests)"},
	{of: saving, what: "a set of links is chosen if it needs at most", name: "savingMargin", unit: "of the time"},
	{of: saving, what: "waking links later may cost more by", name: "energy.Hysteresis", unit: "of it", from: "eMPTCP 3.4"},
	{of: saving, what: "a link that was never used is probed if that costs at most", name: "probePart", unit: "of the energy for the rest"},
	{of: saving, what: "assumed rate of a link that was never used", name: "unknownRate", unit: "bit/s", from: "eMPTCP 3.2"},
	{of: saving, what: "length of a probe", name: "probeTime", unit: "s"},
	{of: saving, what: "assumed time to connect a link", name: "connectTime", unit: "s"},
	{of: saving, what: "other links wait while the chosen ones suffice for", name: "leastAlone", unit: "s"},
	{of: saving, what: "the same before a player", name: "leastPlayed", unit: "s"},
	{of: saving, what: "the rate of a new link does not count for", name: "startupTrips", unit: "round trips"},
	{of: saving, what: "shortest window of a mean rate", name: "shortestMean", unit: "s"},
	{of: saving, what: "all sets are compared for at most", name: "mostSets", unit: "links"},
	{of: saving, what: "extra time allowed, default of `--slowdown`", name: "UsualSlowdown", unit: "times the time of all links, so twice as long in all", from: "of two equally fast links, one alone needs twice the time"},

	{of: greenbag, what: "α of the predicted goodput", name: "goodputWeight", from: "GreenBag IV.B"},
	{of: greenbag, what: "w_r: recovery if w_r · time to play is at most what the part takes", name: "recoveryWeight", from: notSaid},
	{of: greenbag, what: "w_e: all links if w_e · time to play is at most what the segment takes", name: "modeWeight", from: notSaid},
	{of: greenbag, what: "one link is chosen if it needs less than", name: "modeMargin", unit: "of the time", from: notSaid},
	{of: greenbag, what: "assumed cost of a recovery", name: "recoveryTrips", unit: "round trips", from: "TCP, TLS, request, close"},
	{of: greenbag, what: "smallest part of a segment", name: "leastShare", unit: "B", from: "a packet"},
	{of: greenbag, what: "check interval for the mode", name: "greenBagPeriod", unit: "s"},
	{of: greenbag, what: "the goodput of a part counts after", name: "download.leastMeasured", unit: "s or two round trips"},
	{of: greenbag, what: "the player begins with", name: "PlayerBuffer", unit: "B", from: "GreenBag IV.C"},

	{of: http, what: "κ: LTE waits for this much over Wi-Fi", name: "delayBytes", unit: "B", from: "eMPTCP 4.1"},
	{of: http, what: "τ: or for this long", name: "delayTime", unit: "s", from: "eMPTCP 4.1"},
	{of: http, what: "φ: samples before the rate of Wi-Fi is known, one per round trip", name: "samples", from: "eMPTCP 3.5"},
	{of: http, what: "W_init in equation 1, for the least τ", name: "firstWindow", unit: "B", from: "RFC 6928"},
	{of: http, what: "assumed rate of a link that was never used", name: "unknownRate", unit: "bit/s", from: "eMPTCP 3.2"},
	{of: http, what: "hysteresis", name: "energy.Hysteresis", from: "eMPTCP 3.4"},
	{of: http, what: "Holt-Winters: weight of a sample in the level", name: "levelWeight", from: notSaid},
	{of: http, what: "Holt-Winters: weight of a step in the trend", name: "trendWeight", from: notSaid},
	{of: http, what: "smallest sample, unless φ round trips have passed", name: "leastSample", unit: "B", from: "ten packets"},
	{of: http, what: "check interval", name: "emptcpPeriod", unit: "s"},

	{of: "booster", what: "all links are used for files above", name: "boosterFile", unit: "B", from: "thesis 2.3.1"},
	{of: "booster", what: "a segment", name: "boosterSegment", unit: "B", from: "not published; fitted to thesis 2.3.1"},
	{of: "dynsub", what: "playback time of a segment", name: "dynSubSegment", unit: "s", from: "services take 2 to 10 s"},

	{of: rescued, what: "check interval", name: "transfer.CheckInterval", unit: "s"},
	{of: rescued, what: "a link (in uploads a connection) is not silent before", name: "transfer.LeastSilence", unit: "s"},
	{of: rescued, what: "nor, before its first byte, before", name: "download.firstSilence", unit: "s"},
	{of: rescued, what: "backoff of a failed link", name: "transfer.LeastBackoff", unit: "s", from: "work per request"},
	{of: rescued, what: "all three double with each failure, up to", name: "transfer.MostBackoff", unit: "s"},
	{of: rescued, what: "work moves to another link if the end comes earlier by", name: "leastGain", unit: "s"},
	{of: rescued, what: "smallest range that moves", name: "leastSteal", unit: "B", from: "the smallest request"},
	{of: rescued, what: "bytes of a cancelled request that may still arrive", name: "download.maxStale", unit: "B", from: "the server's send queue"},
	{of: rescued, what: "a link is not slow before", name: "PaceWindow", unit: "s", from: "the time over which its rate is averaged"},
	{of: saving, what: "after all chosen links failed, the others are used for", name: "download.overruling", unit: "s"},

	{of: "uploads", what: "unsent bytes in the kernel, at most", name: "upload.unsent", unit: "B", from: "compared"},
	{of: "uploads, adaptive", what: "bytes ahead", name: "Ahead", unit: "times the bytes of a round trip, and those until the next check", from: "compared"},
	{of: "uploads, adaptive", what: "longest round trip that counts for them", name: "transfer.MostRoundTrip", unit: "times the delay without a queue", from: "compared"},
	{of: "uploads, others", what: "requests of a link at a time", name: "upload.mostRequests", unit: ""},
	{of: "uploads, rescue", what: "a link is silent after at least; least time for a confirmation", name: "upload.patience", unit: "s", from: "compared"},
	{of: "uploads, rescue", what: "time limit to connect", name: "upload.connectPatience", unit: "s or, after failures, up to four times that"},
	{of: "uploads, rescue", what: "time limit for TLS", name: "upload.securePatience", unit: "s or 8 round trips; it doubles each time"},
}

// unlisted are constants that decide nothing.
var unlisted = map[string]bool{
	"all":            true, // a name for no link
	"longestHorizon": true, // more than any download takes
}

func (c chosen) row(t *testing.T, known map[string]constant.Value) string {
	value, name := c.value, ""
	switch {
	case c.expression != "":
		if source, err := os.ReadFile(c.file); err != nil || !strings.Contains(string(source), c.expression) {
			t.Errorf("%s has no %q (%v)", c.file, c.expression, err)
		}
	default:
		folder, own, isOther := strings.Cut(c.name, ".")
		if !isOther {
			folder, own = "schedule", c.name
		}
		found, ok := known[folder+"."+own]
		if !ok {
			t.Fatalf("there is no constant %s", c.name)
		}
		value, name = numberText(found, c.unit), " (`"+own+"`)"
	}
	return fmt.Sprintf("| %s | %s%s | %s | %s |\n", c.of, c.what, name, value, c.from)
}

func numberText(value constant.Value, unit string) string {
	number, _ := constant.Float64Val(constant.ToFloat(value))
	words := strings.IndexAny(unit+" ", " ,;:.") // Where the unit ends and text follows.
	kind, rest := unit[:words], unit[words:]
	text := ""
	switch kind {
	case "s":
		text = timeText(time.Duration(number))
	case "B":
		text = bytesText(number)
	case "bit/s":
		text = decimalText(number, "bit/s")
	default:
		return strings.TrimSpace(fmt.Sprintf("%g %s", number, unit))
	}
	return text + rest
}

func timeText(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return fmt.Sprintf("%g ms", float64(d)/1e6)
}

func bytesText(bytes float64) string {
	switch whole := int64(bytes); {
	case whole%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", whole>>20)
	case whole%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", whole>>10)
	}
	return decimalText(bytes, "B")
}

func decimalText(number float64, unit string) string {
	switch {
	case number >= 1e6:
		return fmt.Sprintf("%g M%s", number/1e6, unit)
	case number >= 1e5:
		return fmt.Sprintf("%g k%s", number/1e3, unit)
	}
	return fmt.Sprintf("%g %s", number, unit)
}

// imports finds packages by the last part of their paths. Nothing but constants is wanted of others.
type imports map[string]*types.Package

func (i imports) Import(at string) (*types.Package, error) {
	if found := i[path.Base(at)]; found != nil {
		return found, nil
	}
	return types.NewPackage(at, path.Base(at)), nil
}

// readConstants returns the values of constants by package and name.
func readConstants(t *testing.T) map[string]constant.Value {
	clock := types.NewPackage("time", "time")
	clock.Scope().Insert(types.NewTypeName(0, clock, "Duration", types.Typ[types.Int64]))
	for name, unit := range map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute} {
		clock.Scope().Insert(types.NewConst(0, clock, name, types.Typ[types.Int64], constant.MakeInt64(int64(unit))))
	}
	clock.MarkComplete()
	known, read := map[string]constant.Value{}, imports{"time": clock}
	config := types.Config{Importer: read, IgnoreFuncBodies: true, Error: func(error) {}}
	for _, folder := range []string{"quantity", "energy", "schedule", "transport", "transfer", "download", "upload"} {
		positions := token.NewFileSet()
		var files []*ast.File
		names, err := filepath.Glob("../" + folder + "/*.go")
		testkit.OK(t, err)
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				file, err := parser.ParseFile(positions, name, nil, 0)
				testkit.OK(t, err)
				files = append(files, file)
			}
		}
		read[folder], _ = config.Check(folder, positions, files, nil)
		scope := read[folder].Scope()
		for _, name := range scope.Names() {
			if c, ok := scope.Lookup(name).(*types.Const); ok {
				known[folder+"."+name] = c.Val()
			}
		}
	}
	return known
}

func TestTheDocumentIsUpToDate(t *testing.T) {
	text, err := os.ReadFile(document)
	testkit.OK(t, err)
	before, rest, begun := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !begun || !ended {
		t.Fatalf("%s has no place for the tables", document)
	}
	table := "| algorithm | bytes of a link's next request | decided from | defaults of its flags | source | good for |\n|---|---|---|---|---|---|\n"
	for _, a := range Algorithms {
		table += row(a)
	}
	known := readConstants(t)
	table += "\n## Constants\n\nNo flag sets these. Those without a source are ours. *Compared* means that [several values were measured](../experiments/constants.md).\n\n| algorithm | constant | value | source |\n|---|---|---|---|\n"
	for _, c := range constants {
		table += c.row(t, known)
	}
	if strings.Contains(table, "e+0") { // A time is a count of nanoseconds, which nobody reads.
		t.Errorf("a number stands without its unit: %s", table)
	}
	want := before + tableBegin + "\n" + table + "\n" + tableEnd + after
	if *update {
		testkit.OK(t, os.WriteFile(document, []byte(want), 0o644))
	} else if want != string(text) {
		t.Errorf("%s has other tables: go test ./internal/schedule -update writes them", document)
	}
}

func TestEveryConstantIsInTheDocument(t *testing.T) {
	listed := map[string]bool{}
	for _, c := range constants {
		listed[c.name] = true
	}
	for name := range readConstants(t) {
		if own, ok := strings.CutPrefix(name, "schedule."); ok && !listed[own] && !unlisted[own] {
			t.Errorf("the constant %s is neither in the document's table nor unlisted", own)
		}
	}
}
