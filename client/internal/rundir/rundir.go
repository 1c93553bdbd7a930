// Package rundir writes the client's part of a run directory, which linklab reads. client.jsonl has a
// line for every event of the download (Event), and client.json its result (Summary). A workload in
// front of a client writes workload.jsonl and workload.json (Workload).
package rundir

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/linklab/linklab/client/internal/ownfile"
	"github.com/linklab/linklab/client/internal/printable"
)

// SampleInterval is the interval of the Samples of a link.
const SampleInterval = 100 * time.Millisecond

// The names of the files of a run directory, without .jsonl and .json.
const (
	OfClient   = "client"
	OfWorkload = "workload"
)

// Dir writes a run directory.
type Dir struct {
	path   string
	name   string
	events *os.File
	buffer *bufio.Writer
	lines  *json.Encoder
	// flushed is the time of the last write of the buffer.
	flushed time.Duration
	err     error
}

// flushInterval limits how far the file lags behind the download. A live reader sees it grow, with
// few writes.
const flushInterval = time.Second

// Open creates the directory if necessary, and begins new files.
func Open(path, name string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	events, err := ownfile.OpenOrCreate(filepath.Join(path, name+".jsonl"), 0o644)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if err := events.Truncate(0); err != nil {
		return nil, fmt.Errorf("run directory: %w", errors.Join(err, events.Close()))
	}
	buffer := bufio.NewWriterSize(events, 64<<10)
	return &Dir{path: path, name: name, events: events, buffer: buffer, lines: json.NewEncoder(printable.NewWriter(buffer))}, nil
}

// Record appends an event of the time t after the start. Calls must be in the order of time. Close
// returns the first error.
func (d *Dir) Record(t time.Duration, e Event) {
	e.At(t)
	d.keep(d.lines.Encode(e))
	if t-d.flushed >= flushInterval {
		d.flushed = t
		d.keep(d.buffer.Flush())
	}
}

// Close completes the events and writes the summary, which is a Summary or a Workload.
func (d *Dir) Close(summary any) error {
	d.keep(d.buffer.Flush())
	d.keep(d.events.Close())
	d.keep(write(filepath.Join(d.path, d.name+".json"), summary))
	if d.err != nil {
		return fmt.Errorf("run directory: %w", d.err)
	}
	return nil
}

func (d *Dir) keep(err error) {
	if d.err == nil {
		d.err = err
	}
}
