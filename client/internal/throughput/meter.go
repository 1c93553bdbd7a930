// Package throughput measures the throughput of links.
package throughput

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Meter measures the throughput of one link over a sliding window.
//
// A link has several requests in flight, and its throughput is their sum (thesis 4.4.3.2). So
// every request adds its bytes to the one meter of its link. All times are since a common start,
// and must not decrease.
type Meter struct {
	window   time.Duration
	started  bool
	start    time.Duration
	arrivals []arrival
	inWindow quantity.Bytes
	total    quantity.Bytes
	peak     quantity.Rate
	history  history
}

type arrival struct {
	at    time.Duration
	bytes quantity.Bytes
}

// NewMeter returns a meter that averages over window.
func NewMeter(window time.Duration) *Meter { return &Meter{window: window} }

// Start tells that the link's first request is sent. Later calls do nothing. Until a whole window
// has passed, the mean begins here.
func (m *Meter) Start(now time.Duration) {
	if !m.started {
		m.started, m.start = true, now
	}
}

// Restart forgets the throughput up to now.
func (m *Meter) Restart(now time.Duration) {
	m.started, m.start = true, now
	m.arrivals, m.inWindow = nil, 0
}

// Add counts bytes that arrived at now.
func (m *Meter) Add(now time.Duration, bytes quantity.Bytes) {
	m.arrivals = append(m.arrivals, arrival{now, bytes})
	m.inWindow += bytes
	m.total += bytes
	rate := m.Rate(now)
	m.peak = max(m.peak, rate)
	if m.history.due(now, m.start, m.window) {
		m.history.add(now, rate)
	}
}

// Variation returns the coefficient of variation of the throughput. Its samples are one window
// apart. It returns 0 before the second sample.
func (m *Meter) Variation() float64 { return m.history.variation() }

// Rate returns the mean throughput over the window before now.
func (m *Meter) Rate(now time.Duration) quantity.Rate {
	old := 0
	for old < len(m.arrivals) && m.arrivals[old].at <= now-m.window {
		m.inWindow -= m.arrivals[old].bytes
		old++
	}
	m.arrivals = m.arrivals[old:]
	measured := min(m.window, now-m.start)
	if !m.started || measured <= 0 {
		return 0
	}
	return m.inWindow.Per(measured)
}

// Peak returns the highest throughput so far. It stands for an unknown bandwidth (thesis 4.3.4).
func (m *Meter) Peak() quantity.Rate { return m.peak }

// Total returns the number of bytes that have arrived.
func (m *Meter) Total() quantity.Bytes { return m.total }
