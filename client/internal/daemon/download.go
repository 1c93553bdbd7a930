package daemon

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/quota"
)

// Request is a user's request for a download.
type Request struct {
	URL string `json:"url"`
	// Output is the file's name in the daemon's directory. If it is empty, the name is the last
	// part of the URL.
	Output string `json:"output,omitempty"`
	// Checksum is the checksum of the file as sha-256=HEX, or empty.
	Checksum string `json:"checksum,omitempty"`
}

// State is the state of a download.
type State string

// A download is first queued and then running. Its final state is one of the last three. It waits
// while no link reaches the server. When a daemon ends, its running and waiting downloads are
// queued again.
const (
	Queued    State = "queued"
	Running   State = "running"
	Waiting   State = "waiting"
	Complete  State = "complete"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Complete || s == Failed || s == Cancelled }

// Download is an entry of the queue.
type Download struct {
	// ID counts the downloads from 1.
	ID int `json:"id"`
	Request
	State State `json:"state"`
	// Error says why the download failed or waits. While it is running, it says why it waited,
	// until the server answers.
	Error string `json:"error,omitempty"`
	// Warning says why a complete file is doubtful.
	Warning string `json:"warning,omitempty"`
	// RetryAt is when a waiting download is tried again.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// AddedAt, StartedAt and EndedAt are dates. The latter two are omitted until they are
	// known.
	AddedAt   time.Time `json:"added_at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Size is the size of the file in bytes, 0 until it is known.
	Size quantity.Bytes `json:"size_bytes"`
	// SHA256 is the checksum of the complete file in hexadecimal.
	SHA256 string `json:"sha256,omitempty"`
	// Links holds the progress of each link in the last run of the download.
	Links map[string]Progress `json:"links,omitempty"`
}

// Progress is the part of one link in a download.
type Progress struct {
	// Received counts bytes of response bodies.
	Received quantity.Bytes `json:"received_bytes"`
	// Throughput is the throughput of the link, 0 when it is not running.
	Throughput quantity.Rate `json:"throughput_bps"`
}

// LinkStatus is the account and the limit of a link.
type LinkStatus struct {
	Link string `json:"link"`
	// Cap is in bytes. It is omitted without a cap.
	Cap    quantity.Bytes `json:"cap_bytes,omitempty"`
	Period quota.Period   `json:"period,omitempty"`
	// Since is the beginning of the account, omitted if the account never ends.
	Since time.Time `json:"since,omitzero"`
	// Used counts the bytes since then in both directions.
	Used quantity.Bytes `json:"used_bytes"`
}
