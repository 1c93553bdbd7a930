// Package rundir writes the client's part of a run directory, the only
// interface between running and looking: client.jsonl, a line for every event
// of the download (Event), and client.json, what it came to (Summary); or
// workload.jsonl and workload.json (Workload) of a program in front of it.
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

// SampleInterval is the time between two Samples of a link.
const SampleInterval = 100 * time.Millisecond

// What the files of a run directory are called, before .jsonl and .json.
const (
	OfClient   = "client"
	OfWorkload = "workload"
)

// Dir is a run directory that is being written.
type Dir struct {
	path   string
	name   string
	events *os.File
	buffer *bufio.Writer
	lines  *json.Encoder
	// flushed is when the buffer was last written out.
	flushed time.Duration
	err     error
}

// flushInterval is how far the events may lag behind the download, so that
// a live reader sees it grow while there are few writes.
const flushInterval = time.Second

// Open creates the directory if there is none and begins the events anew.
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

// Record appends an event that happened at t after the start. The caller
// orders the calls; the first error is kept for Close.
func (d *Dir) Record(t time.Duration, e Event) {
	e.At(t)
	d.keep(d.lines.Encode(e))
	if t-d.flushed >= flushInterval {
		d.flushed = t
		d.keep(d.buffer.Flush())
	}
}

// Close completes the events and writes the summary, a Summary or a Workload.
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
