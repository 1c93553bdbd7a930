package daemon

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/quota"
)

// Request is what a user wants to have downloaded.
type Request struct {
	URL string `json:"url"`
	// Output is the file's name in the daemon's directory; if empty, the
	// last part of the URL.
	Output string `json:"output,omitempty"`
	// Checksum is what the file must have, as sha-256=HEX; may be empty.
	Checksum string `json:"checksum,omitempty"`
}

// State is where a download stands.
type State string

// A download is queued, then running, then one of the last three for good. It
// waits in between while no link reaches the server. A daemon that ends puts
// those that run or wait back in the queue.
const (
	Queued    State = "queued"
	Running   State = "running"
	Waiting   State = "waiting"
	Complete  State = "complete"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether the state is for good.
func (s State) Ended() bool { return s == Complete || s == Failed || s == Cancelled }

// Download is an entry of the queue.
type Download struct {
	// ID counts the downloads from 1.
	ID int `json:"id"`
	Request
	State State `json:"state"`
	// Error says why the download failed, or why it still waits; when it is
	// running, why it waited until the server answers.
	Error string `json:"error,omitempty"`
	// Warning says what is doubtful of a complete file.
	Warning string `json:"warning,omitempty"`
	// RetryAt is when a download that waits is tried again.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// AddedAt, StartedAt and EndedAt are dates; the latter two are left out
	// until they are known.
	AddedAt   time.Time `json:"added_at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Size is that of the file in bytes, 0 until it is known.
	Size quantity.Bytes `json:"size_bytes"`
	// SHA256 is the checksum of the complete file in hexadecimal.
	SHA256 string `json:"sha256,omitempty"`
	// Links holds what each link did in the last run of the download.
	Links map[string]Progress `json:"links,omitempty"`
}

// Progress is one link's part of a download.
type Progress struct {
	// Received counts bytes of response bodies.
	Received quantity.Bytes `json:"received_bytes"`
	// Throughput is the link's, 0 when it is not running.
	Throughput quantity.Rate `json:"throughput_bps"`
}

// LinkStatus is what a link may carry and has carried.
type LinkStatus struct {
	Link string `json:"link"`
	// Cap in bytes is left out if there is none.
	Cap    quantity.Bytes `json:"cap_bytes,omitempty"`
	Period quota.Period   `json:"period,omitempty"`
	// Since is when the account began, left out if it never ends.
	Since time.Time `json:"since,omitzero"`
	// Used counts the bytes since then, in both directions.
	Used quantity.Bytes `json:"used_bytes"`
}
