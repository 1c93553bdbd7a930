package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Shown estimates the rate of a link before it has carried payload.
// Connections that start together exchange their TLS handshakes back to back, as a
// train of packets (packet pairs: Keshav 1991). The estimate is a lower bound for
// the slower direction. A link without any other estimate gets no more than that.
type Shown struct {
	from, last time.Duration
	bytes      quantity.Bytes
}

// asymmetry is the largest usual ratio of downlink to uplink rate. A client's part of
// a TLS handshake is as long as the server's, so the train mostly measures the uplink.
// Half the value works as well, a quarter and twice the value work worse
// (emulator/handbook/experiments/constants.md).
const asymmetry = 4

// Add records a connection that was ready at now, and the bytes that it received.
func (h *Shown) Add(now time.Duration, bytes quantity.Bytes) {
	switch {
	case h.from == 0:
		h.from = now
	case now-h.last > PaceWindow:
		return // This connection did not start with the others: at 100 kbit/s a certificate takes half a second.
	default:
		h.bytes += bytes
	}
	h.last = now
}

// Rate returns a lower bound of the link's rate, 0 if unknown.
func (h *Shown) Rate() quantity.Rate {
	if h.last <= h.from {
		return 0
	}
	return h.bytes.Per(h.last - h.from)
}

// Most returns an upper bound of the link's rate, 0 if unknown.
func (h *Shown) Most() quantity.Rate { return asymmetry * h.Rate() }
