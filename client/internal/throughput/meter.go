// Package throughput measures what a link delivers.
package throughput

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Meter measures the throughput of one link over a sliding window.
//
// Several requests of a link are in flight at a time, and the throughput of
// the link is the sum over them (thesis 4.4.3.2): every request adds
// its bytes to the one meter of its link. Times are durations since a start
// that is common to all calls and must not decrease.
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

// Start says that the link's first request is issued; later calls do nothing.
// Until a whole window has passed since, the mean is taken from here.
func (m *Meter) Start(now time.Duration) {
	if !m.started {
		m.started, m.start = true, now
	}
}

// Restart forgets the throughput until now: the link begins anew.
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

// Variation is the coefficient of variation of the throughput, of samples that
// are a window apart; 0 before there are two.
func (m *Meter) Variation() float64 { return m.history.variation() }

// Rate is the mean throughput over the window that ends at now.
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

// Peak is the highest throughput seen so far, which stands for a bandwidth
// that is not known (thesis 4.3.4).
func (m *Meter) Peak() quantity.Rate { return m.peak }

// Total is the number of bytes that arrived.
func (m *Meter) Total() quantity.Bytes { return m.total }
