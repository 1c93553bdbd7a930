package rundir

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Workload is workload.json, what a player, a browser or another program in
// front of a download came to.
type Workload struct {
	// Version and Go are those of the program.
	Version string `json:"version"`
	Go      string `json:"go"`
	// Workload is player, page, rounds or paced.
	Workload string `json:"workload"`
	URL      string `json:"url"`
	// Outcome is complete, failed or interrupted; Error says why.
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	// StartedAt is when the first request was made, in ns since 1970.
	StartedAt int64 `json:"started_at_unix_ns"`
	// Duration is from the first request, before its connection, to the last
	// byte (or to the failure) in monotonic ns.
	Duration int64 `json:"duration_ns"`
	// Bytes counts what arrived of the bodies of answers.
	Bytes quantity.Bytes `json:"bytes"`
	// Figures are the workload's own, by name; the names end in units.
	Figures map[string]float64 `json:"figures"`
}

// Exchange tells that a request of a workload has been answered.
type Exchange struct {
	Stamp
	// Number counts from 1, in the order of the requests.
	Number int `json:"number"`
	// Bytes is the size of the answer's body.
	Bytes int64 `json:"bytes"`
	// Took is the time from the request to the answer's last byte in ns.
	Took int64 `json:"took_ns"`
}

// PlayerState tells what a player does from now on.
type PlayerState struct {
	Stamp
	// State is one of those below.
	State string `json:"state"`
	// Buffered is what has arrived and is not played yet in bytes.
	Buffered int64 `json:"buffered_bytes"`
}

// States of a player. It is Paused while it does not read because the buffer
// is full; it plays meanwhile.
const (
	Playing = "playing"
	Stalled = "stalled"
	Paused  = "paused"
	Reading = "reading"
)

func (e *Exchange) At(t time.Duration)    { e.set(t, "exchange") }
func (e *PlayerState) At(t time.Duration) { e.set(t, "player") }
