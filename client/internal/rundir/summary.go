package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
)

// Summary is the content of client.json.
type Summary struct {
	// Version and Go are the versions of the program and of Go.
	Version   string `json:"version"`
	Go        string `json:"go"`
	Algorithm string `json:"algorithm"`
	URL       string `json:"url"`
	// Size is the size of the file in bytes, 0 if unknown.
	Size quantity.Bytes `json:"size_bytes"`
	// Resumed counts the bytes of the file from earlier calls.
	Resumed quantity.Bytes `json:"resumed_bytes"`
	// SHA256 is the checksum in hexadecimal, "" without a complete file.
	SHA256 string `json:"sha256"`
	// Outcome is complete, failed or interrupted; Error says why.
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	// Warning says why a complete file is doubtful, "" if it is not.
	Warning string `json:"warning"`
	// StartedAt is the beginning of the download in ns since 1970.
	StartedAt int64 `json:"started_at_unix_ns"`
	// Download is the time in monotonic ns from before the first dial until the last byte is
	// written to the file, or until the failure. Checksum, sync and rename come later.
	Download int64 `json:"download_ns"`
	// Links holds the result of each link by name.
	Links map[string]LinkSummary `json:"links"`
}

// LinkSummary is the result of one link.
type LinkSummary struct {
	Device string `json:"device"`
	// Bytes counts the bytes of all bodies that arrived over the link.
	Bytes quantity.Bytes `json:"bytes"`
	// Finish is the time from the start to the link's last byte in ns, 0 if none arrived.
	Finish int64 `json:"finish_ns"`
	// Requests is the number of range requests issued.
	Requests int `json:"requests"`
	// MinRTT and LastRTT are round trip times in ns: the least one, without queues, and the last
	// one.
	MinRTT  int64 `json:"rtt_min_ns"`
	LastRTT int64 `json:"rtt_last_ns"`
	// Peak is the highest throughput over a window in bits per second.
	Peak quantity.Rate `json:"peak_bps"`
	// Wasted counts the received bytes that were not used, because other links had taken their
	// ranges over.
	Wasted quantity.Bytes `json:"wasted_bytes"`
	// Failovers counts how often the link lost work because it failed or was
	// slow.
	Failovers int `json:"failovers"`
}

// write replaces the file atomically.
func write(name string, summary any) error {
	text, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	defer temporary.Close()
	if err := temporary.Chmod(0o644); err != nil {
		return err
	}
	if _, err := printable.NewWriter(temporary).Write(append(text, '\n')); err != nil {
		return err
	}
	return plainfile.Rename(temporary.Name(), name)
}
