package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
)

// hole is what the kernel holds of a session behind a lost packet. The program gets none of it until the packet was
// sent again, a round trip later, and then all at once. But these bytes arrived at the link's rate. The engine must not
// take them for late, nor the burst for fast: it would move work to and fro.
type hole struct {
	// kept is how many bytes were behind the hole at the last look. received is how many bytes
	// the session had received then, and outOfOrder how many segments out of order.
	kept, received quantity.Bytes
	outOfOrder     uint32
	// opened and grown are when bytes arrived behind it first and last.
	opened, grown time.Duration
}

// look updates the hole by what the kernel reports. It returns how many bytes arrived behind a lost
// packet since the last look. The hole is closed when for a round trip bytes arrived in order
// alone: before that another lost packet may be under way.
func (h *hole) look(received quantity.Bytes, outOfOrder uint32, now, rtt time.Duration) (came quantity.Bytes) {
	came = quantity.Bytes(outOfOrder-h.outOfOrder) * schedule.SegmentSize
	switch {
	case came > 0:
		if h.kept == 0 {
			h.opened = now
		}
		h.grown = now
	case received != h.received && now-h.grown > rtt:
		h.kept = 0
	}
	h.kept += came
	h.received, h.outOfOrder = received, outOfOrder
	return came
}

// deliver returns how many of the bytes that the program gets were not behind the hole.
func (h *hole) deliver(bytes quantity.Bytes) quantity.Bytes {
	known := min(bytes, h.kept)
	h.kept -= known
	return bytes - known
}

// filled is how long the program waits at least for the bytes behind the hole: the lost packet
// comes a round trip after the first bytes behind it.
func (h *hole) filled(now, rtt time.Duration) time.Duration {
	if h.kept == 0 {
		return 0
	}
	return max(0, h.opened+rtt-now)
}
