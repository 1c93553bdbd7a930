package rundir

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// golden has every kind of event with all of its fields.
var golden = []Event{
	&Start{
		Algorithm: "alg3",
		Links:     []LinkDevice{{Link: "wifi", Device: "wlan0"}, {Link: "lte", Device: "rmnet0"}},
		Options:   map[string]any{"overlap": 0.6, "rescue": true},
	},
	&Connected{Link: "wifi", TCP: 10_000_000, TLS: 20_000_000, RTT: 10_100_000, Protocol: "TLS 1.3 h2"},
	&Size{Bytes: 3_000_000, ETag: `"386d4380"`, Link: "wifi", Resumed: 500_000},
	&Request{Link: "lte", ID: 1, Offset: 500_000, Length: 1_000_000, Rate: 52_000_000.5, From: "wifi"},
	&FirstByte{Link: "lte", ID: 1},
	&Sample{Link: "lte", Received: 400_000, Throughput: 51_000_000.25, RTT: 60_000_000, MinRTT: 50_000_000, InFlight: 1, Segments: 290, OutOfOrder: 3},
	&Failover{Link: "wifi", To: "lte", Bytes: 300_000, Reason: "stalled"},
	&Ban{Link: "wifi", Error: "connection refused", Retry: 250_000_000},
	&Late{Link: "wifi", Bytes: 70_000},
	&End{Link: "lte", ID: 1, Bytes: 900_000, Outcome: Failed, Error: "connection reset by peer", Wasted: 1000},
	&Done{Outcome: Failed, Error: "no link is usable", Download: 900_000_000},
}

var goldenSummary = Summary{
	Version: "v1.2.3", Go: "go1.26", Algorithm: "alg3", URL: "https://example.org/file",
	Size: 3_000_000, Resumed: 500_000, SHA256: "00ff", Outcome: Complete, Error: "none", Warning: "may be cut short",
	StartedAt: 1_700_000_000_000_000_000, Download: 900_000_000,
	Links: map[string]LinkSummary{"wifi": {
		Device: "wlan0", Bytes: 1_600_000, Finish: 890_000_000, Requests: 3, MinRTT: 10_000_000, LastRTT: 12_000_000,
		Peak: 80_000_000.5, Wasted: 1000, Failovers: 1,
	}},
}

// linklab's tests read testdata/golden. So a change of a line or a field here also shows there.
func TestGoldenFilesOfARun(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path, OfClient)
	testkit.OK(t, err)
	for i, event := range golden {
		d.Record(time.Duration(i)*100*time.Millisecond, event)
	}
	testkit.OK(t, d.Close(goldenSummary))
	for _, name := range []string{"client.jsonl", "client.json"} {
		got, err := os.ReadFile(filepath.Join(path, name))
		testkit.OK(t, err)
		committed := filepath.Join("testdata", "golden", name)
		if *update {
			testkit.OK(t, os.WriteFile(committed, got, 0o644))
		}
		if want, err := os.ReadFile(committed); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is\n%swant (%v; go test ./internal/rundir -update writes it anew)\n%s", name, got, err, want)
		}
	}
}

func TestGoldenFilesHaveEveryKindAndField(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	testkit.OK(t, err)
	missing := map[string]bool{}
	for _, declaration := range source.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name == "At" {
			missing[f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name] = true
		}
	}
	if len(missing) == 0 {
		t.Fatal("event.go has no events")
	}
	for i, event := range golden {
		event.At(time.Duration(i + 1))
		value := reflect.ValueOf(event).Elem()
		delete(missing, value.Type().Name())
		checkAllSet(t, value)
	}
	for kind := range missing {
		t.Errorf("%s is not among the golden events", kind)
	}
	checkAllSet(t, reflect.ValueOf(goldenSummary))
}

// checkAllSet fails if a field is empty.
func checkAllSet(t *testing.T, value reflect.Value) {
	t.Helper()
	testkit.Holds(t, !value.IsZero(), value.Type())
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Field(i); field.IsZero() {
				t.Errorf("%s.%s is empty", value.Type(), value.Type().Field(i).Name)
			} else {
				checkAllSet(t, field)
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			checkAllSet(t, value.Index(i))
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			checkAllSet(t, value.MapIndex(key))
		}
	}
}
