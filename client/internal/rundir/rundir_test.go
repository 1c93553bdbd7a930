package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

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
