package rundir

import "time"

// An Event is one line of client.jsonl. Bytes, and rates in bits per second, are plain numbers in
// it: encoding/json allocates memory for every type that it meets, and the time of its collection
// changes runs in virtual time.
type Event interface {
	// At sets the time since the start of the download.
	At(t time.Duration)
}

// Stamp begins every line.
type Stamp struct {
	// T is the time since the start of the download in ns.
	T int64 `json:"t_ns"`
	// Event is the kind of the line.
	Event string `json:"event"`
}

// Outcomes of requests and of the download.
const (
	Complete    = "complete"
	Failed      = "failed"
	Cancelled   = "cancelled"
	Interrupted = "interrupted"
)

// Start is the first line.
type Start struct {
	Stamp
	Algorithm string         `json:"algorithm"`
	Links     []LinkDevice   `json:"links"`
	Options   map[string]any `json:"options"`
}

// LinkDevice names the device of a link.
type LinkDevice struct {
	Link   string `json:"link"`
	Device string `json:"device"`
}

// Connected means that a link can take requests.
type Connected struct {
	Stamp
	Link string `json:"link"`
	// TCP is the time of name resolution and TCP handshake in ns.
	TCP int64 `json:"tcp_ns"`
	// TLS is the time of the TLS handshake in ns.
	TLS int64 `json:"tls_ns"`
	// RTT is the kernel's round trip time in ns.
	RTT      int64  `json:"rtt_ns"`
	Protocol string `json:"protocol"`
}

// Size records the server's description of the file.
type Size struct {
	Stamp
	Bytes int64  `json:"bytes"`
	ETag  string `json:"etag"`
	// Link is the link that asked.
	Link string `json:"link"`
	// Resumed counts the bytes from earlier calls.
	Resumed int64 `json:"resumed_bytes,omitempty"`
}

// Request means that a range was requested.
type Request struct {
	Stamp
	Link string `json:"link"`
	// ID counts the requests of the download from 1.
	ID     int   `json:"id"`
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
	// Rate is the throughput of the link at the decision in bits per second.
	Rate float64 `json:"rate_bps"`
	// From is the link that lost the range, if the range was taken over.
	From string `json:"from,omitempty"`
}

// FirstByte means that the first byte of a request's body arrived.
type FirstByte struct {
	Stamp
	Link string `json:"link"`
	ID   int    `json:"id"`
}

// End means that a request ended.
type End struct {
	Stamp
	Link    string `json:"link"`
	ID      int    `json:"id"`
	Bytes   int64  `json:"bytes"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	// Wasted counts received bytes that were not needed any more. They are not in Bytes.
	Wasted int64 `json:"wasted_bytes,omitempty"`
}

// Failover means that a link lost work.
type Failover struct {
	Stamp
	Link string `json:"link"`
	// To is the link that got the work, "" if any link may take it.
	To    string `json:"to,omitempty"`
	Bytes int64  `json:"bytes"`
	// Reason is lost, excluded, stalled or slow.
	Reason string `json:"reason"`
}

// Ban means that a link backs off.
type Ban struct {
	Stamp
	Link  string `json:"link"`
	Error string `json:"error"`
	// Retry is the time until the link is tried again in ns.
	Retry int64 `json:"retry_ns"`
}

// Late counts wasted bytes of cancelled requests that arrived on a connection of the link.
type Late struct {
	Stamp
	Link  string `json:"link"`
	Bytes int64  `json:"bytes"`
}

// Sample is the state of a connected link at a multiple of SampleInterval.
type Sample struct {
	Stamp
	Link string `json:"link"`
	// Received counts the bytes of all bodies so far.
	Received int64 `json:"received_bytes"`
	// Throughput is the mean over the throughput window in bits per second.
	Throughput float64 `json:"throughput_bps"`
	// RTT is the current round trip time in ns, queues included.
	RTT int64 `json:"rtt_ns"`
	// MinRTT is the round trip time without queues in ns.
	MinRTT int64 `json:"min_rtt_ns"`
	// InFlight is the number of requests in flight.
	InFlight int `json:"in_flight"`
	// Segments counts the data segments that have arrived on the connection,
	// and OutOfOrder those behind a lost one.
	Segments   int64 `json:"segments"`
	OutOfOrder int64 `json:"out_of_order"`
}

// Done is the last line.
type Done struct {
	Stamp
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	// Download is the time to the last byte or to the failure in ns.
	Download int64 `json:"download_ns"`
}

func (s *Stamp) set(t time.Duration, event string) { s.T, s.Event = t.Nanoseconds(), event }

func (e *Start) At(t time.Duration)     { e.set(t, "start") }
func (e *Connected) At(t time.Duration) { e.set(t, "connected") }
func (e *Size) At(t time.Duration)      { e.set(t, "size") }
func (e *Request) At(t time.Duration)   { e.set(t, "request") }
func (e *FirstByte) At(t time.Duration) { e.set(t, "first_byte") }
func (e *End) At(t time.Duration)       { e.set(t, "end") }
func (e *Failover) At(t time.Duration)  { e.set(t, "failover") }
func (e *Ban) At(t time.Duration)       { e.set(t, "ban") }
func (e *Late) At(t time.Duration)      { e.set(t, "late") }
func (e *Sample) At(t time.Duration)    { e.set(t, "sample") }
func (e *Done) At(t time.Duration)      { e.set(t, "done") }
