package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
)

// Summary is client.json, what a download came to.
type Summary struct {
	// Version and Go are those of the program.
	Version   string `json:"version"`
	Go        string `json:"go"`
	Algorithm string `json:"algorithm"`
	URL       string `json:"url"`
	// Size is the size of the file in bytes, 0 if it was not learnt.
	Size quantity.Bytes `json:"size_bytes"`
	// Resumed counts the bytes of it that an earlier call had left.
	Resumed quantity.Bytes `json:"resumed_bytes"`
	// SHA256 is the checksum in hexadecimal, empty if there is no whole file.
	SHA256 string `json:"sha256"`
	// Outcome is complete, failed or interrupted; Error says why.
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	// Warning says what is doubtful of a complete file; empty if nothing is.
	Warning string `json:"warning"`
	// StartedAt is when the download began, in ns since 1970.
	StartedAt int64 `json:"started_at_unix_ns"`
	// Download is the time from before the first dial to the last byte
	// written to the file (or to the failure) in monotonic ns; checksum, sync
	// and rename come after it.
	Download int64 `json:"download_ns"`
	// Links holds what each link did, by name.
	Links map[string]LinkSummary `json:"links"`
}

// LinkSummary is what one link did.
type LinkSummary struct {
	Device string `json:"device"`
	// Bytes counts the bytes of all bodies that the link received.
	Bytes quantity.Bytes `json:"bytes"`
	// Finish is the time from the start to the link's last byte in ns, 0 if
	// it received none.
	Finish int64 `json:"finish_ns"`
	// Requests is the number of range requests issued.
	Requests int `json:"requests"`
	// MinRTT and LastRTT are the round trip times in ns, without queues and
	// at the end.
	MinRTT  int64 `json:"rtt_min_ns"`
	LastRTT int64 `json:"rtt_last_ns"`
	// Peak is the highest throughput over a window in bits per second.
	Peak quantity.Rate `json:"peak_bps"`
	// Wasted counts the bytes that were received and not used: other links
	// had taken them over.
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
