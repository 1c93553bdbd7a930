package rundir

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Workload is the content of workload.json: the result of a player, a browser or another program in
// front of a client.
type Workload struct {
	// Version and Go are the versions of the program and of Go.
	Version string `json:"version"`
	Go      string `json:"go"`
	// Workload is player, page, rounds or paced.
	Workload string `json:"workload"`
	URL      string `json:"url"`
	// Outcome is complete, failed or interrupted; Error says why.
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	// StartedAt is the time of the first request in ns since 1970.
	StartedAt int64 `json:"started_at_unix_ns"`
	// Duration is the time in monotonic ns from the first request, before its connection, to the
	// last byte or to the failure.
	Duration int64 `json:"duration_ns"`
	// Bytes counts the bytes of the bodies of answers.
	Bytes quantity.Bytes `json:"bytes"`
	// Figures holds the workload's own results by name. The names end in units.
	Figures map[string]float64 `json:"figures"`
}

// Exchange means that a request of a workload was answered.
type Exchange struct {
	Stamp
	// Number counts the requests from 1.
	Number int `json:"number"`
	// Bytes is the size of the answer's body.
	Bytes int64 `json:"bytes"`
	// Took is the time from the request to the answer's last byte in ns.
	Took int64 `json:"took_ns"`
}

// PlayerState means that the state of a player changed.
type PlayerState struct {
	Stamp
	// State is one of the states below.
	State string `json:"state"`
	// Buffered counts the bytes that arrived and were not played.
	Buffered int64 `json:"buffered_bytes"`
}

// The states of a player. A Paused player plays, but does not read, because its buffer is full.
const (
	Playing = "playing"
	Stalled = "stalled"
	Paused  = "paused"
	Reading = "reading"
)

func (e *Exchange) At(t time.Duration)    { e.set(t, "exchange") }
func (e *PlayerState) At(t time.Duration) { e.set(t, "player") }
