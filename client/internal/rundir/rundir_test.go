package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestFilesOfARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results", "1")
	d, err := Open(path, OfClient)
	testkit.OK(t, err)
	d.Record(0, &Start{Algorithm: "alg3", Links: []LinkDevice{{"wifi", "wlan0"}}, Options: map[string]any{"overlap": 0.6}})
	d.Record(1, &Connected{Link: "wifi", TCP: 1, TLS: 2, RTT: 3, Protocol: "TLS 1.3 h2"})
	d.Record(2, &Size{Bytes: 10, ETag: `"e"`, Link: "wifi"})
	d.Record(3, &Request{Link: "wifi", ID: 1, Offset: 0, Length: 10, Rate: 8.5})
	d.Record(4, &FirstByte{Link: "wifi", ID: 1})
	d.Record(5, &Sample{Link: "wifi", Received: 4, Throughput: 9, RTT: 7, MinRTT: 6, InFlight: 1, Segments: 8, OutOfOrder: 2})
	d.Record(6, &End{Link: "wifi", ID: 1, Bytes: 10, Outcome: Complete})
	d.Record(7, &End{Link: "wifi", ID: 2, Bytes: 0, Outcome: Failed, Error: "why"})
	d.Record(8, &Size{Bytes: 10, Link: "wifi", Resumed: 4})
	d.Record(9, &Done{Outcome: Complete, Download: 6})
	summary := Summary{
		Version: "v1", Go: "go1", Algorithm: "alg3", URL: "https://h/f", Size: 10, SHA256: "00",
		Outcome: Complete, StartedAt: 5, Download: 6,
		Links: map[string]LinkSummary{"wifi": {Device: "wlan0", Bytes: 10, Finish: 6, Requests: 1, MinRTT: 6, LastRTT: 7, Peak: 9}},
	}
	testkit.OK(t, d.Close(summary))

	lines, err := os.ReadFile(filepath.Join(path, "client.jsonl"))
	testkit.OK(t, err)
	want := `{"t_ns":0,"event":"start","algorithm":"alg3","links":[{"link":"wifi","device":"wlan0"}],"options":{"overlap":0.6}}
{"t_ns":1,"event":"connected","link":"wifi","tcp_ns":1,"tls_ns":2,"rtt_ns":3,"protocol":"TLS 1.3 h2"}
{"t_ns":2,"event":"size","bytes":10,"etag":"\"e\"","link":"wifi"}
{"t_ns":3,"event":"request","link":"wifi","id":1,"offset":0,"length":10,"rate_bps":8.5}
{"t_ns":4,"event":"first_byte","link":"wifi","id":1}
{"t_ns":5,"event":"sample","link":"wifi","received_bytes":4,"throughput_bps":9,"rtt_ns":7,"min_rtt_ns":6,"in_flight":1,"segments":8,"out_of_order":2}
{"t_ns":6,"event":"end","link":"wifi","id":1,"bytes":10,"outcome":"complete"}
{"t_ns":7,"event":"end","link":"wifi","id":2,"bytes":0,"outcome":"failed","error":"why"}
{"t_ns":8,"event":"size","bytes":10,"etag":"","link":"wifi","resumed_bytes":4}
{"t_ns":9,"event":"done","outcome":"complete","download_ns":6}
`
	testkit.Same(t, string(lines), want)

	text, err := os.ReadFile(filepath.Join(path, "client.json"))
	testkit.OK(t, err)
	var got Summary
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, summary) {
		t.Errorf("client.json is %+v (%v), want %+v", got, err, summary)
	}
	if entries, _ := os.ReadDir(path); len(entries) != 2 {
		t.Errorf("%v is in the run directory, want client.json and client.jsonl", entries)
	}
}

// A live reader sees events older than a second.
func TestEventsAreWrittenEverySecond(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path, OfClient)
	testkit.OK(t, err)
	lines := func() int {
		text, err := os.ReadFile(filepath.Join(path, "client.jsonl"))
		testkit.OK(t, err)
		return strings.Count(string(text), "\n")
	}
	d.Record(100*time.Millisecond, &FirstByte{Link: "wifi", ID: 1})
	testkit.Same(t, lines(), 0)
	d.Record(1100*time.Millisecond, &FirstByte{Link: "wifi", ID: 2})
	testkit.Same(t, lines(), 2)
	testkit.OK(t, d.Close(Summary{}))
}

func TestErrorsAreReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testkit.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(file, OfClient); err == nil || !strings.HasPrefix(err.Error(), "run directory: ") {
		t.Errorf("Open of a file returns %v", err)
	}
	path := t.TempDir()
	d, err := Open(path, OfClient)
	testkit.OK(t, err)
	testkit.OK(t, os.Mkdir(filepath.Join(path, "client.json"), 0o700))
	if err := d.Close(Summary{}); err == nil {
		t.Error("Close succeeds though client.json cannot be written")
	}
	if entries, _ := os.ReadDir(path); len(entries) != 2 {
		t.Errorf("%v is in the run directory: a temporary file is left", entries)
	}
}

// In a directory that others can write to, a symbolic link must not lead the events into another file
// of the user.
func TestAPlantedLinkIsNotFollowed(t *testing.T) {
	directory := t.TempDir()
	victim := filepath.Join(directory, "victim")
	for _, plant := range []func(victim, name string) error{os.Symlink, os.Link} {
		testkit.OK(t, os.WriteFile(victim, []byte("precious"), 0o600))
		name := filepath.Join(directory, "client.jsonl")
		testkit.OK(t, plant(victim, name))
		if _, err := Open(directory, OfClient); err == nil || !strings.HasPrefix(err.Error(), "run directory: "+name+" is not used, because ") {
			t.Errorf("the error is %v", err)
		}
		if text, _ := os.ReadFile(victim); string(text) != "precious" {
			t.Errorf("the file that the link leads to holds %q", text)
		}
		testkit.OK(t, os.Remove(name))
	}
}

func TestARunBeginsAnew(t *testing.T) {
	directory := t.TempDir()
	for _, options := range []map[string]any{{"a": strings.Repeat("x", 1000)}, {}} {
		d, err := Open(directory, OfClient)
		testkit.OK(t, err)
		d.Record(0, &Start{Options: options})
		testkit.OK(t, d.Close(Summary{}))
	}
	want := `{"t_ns":0,"event":"start","algorithm":"","links":null,"options":{}}` + "\n"
	if text, err := os.ReadFile(filepath.Join(directory, "client.jsonl")); err != nil || string(text) != want {
		t.Errorf("client.jsonl is %s (%v)", text, err)
	}
}

// The files of a run contain no control character from a server.
func TestFilesOfARunArePrintable(t *testing.T) {
	directory := t.TempDir()
	const hostile = "\"\x1b[2J\u009b2J\u202e\x7f\""
	d, err := Open(directory, OfClient)
	testkit.OK(t, err)
	d.Record(0, &Size{ETag: hostile})
	d.Record(0, &Done{Error: hostile})
	testkit.OK(t, d.Close(Summary{Error: hostile}))
	for name, first := range map[string]any{"client.jsonl": &Size{}, "client.json": &Summary{}} {
		text, err := os.ReadFile(filepath.Join(directory, name))
		testkit.OK(t, err)
		if i := strings.IndexFunc(string(text), func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }); i >= 0 {
			t.Errorf("%s holds %q", name, text)
		}
		if err := json.NewDecoder(strings.NewReader(string(text))).Decode(first); err != nil {
			t.Error(err)
		}
		switch first := first.(type) {
		case *Size:
			testkit.Same(t, first.ETag, hostile)
		case *Summary:
			testkit.Same(t, first.Error, hostile)
		}
	}
}
