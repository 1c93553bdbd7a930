package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
)

// hole is what the kernel keeps of a session behind a lost packet: a program gets
// none of it until that was sent again, a round trip later with the queue in it,
// and then all at once. It has come all the same, at the rate of the link: who
// takes it for late, or what comes at once for fast, moves work to and fro.
type hole struct {
	// kept is what was behind it at the last look. received is what the session
	// had received then, and outOfOrder how many segments had come out of order.
	kept, received quantity.Bytes
	outOfOrder     uint32
	// opened and grown are when something has come behind it first and last.
	opened, grown time.Duration
}

// look takes note of what the kernel says of the session now, and returns how
// much has come behind a lost packet since the last look. Nothing is behind one
// any more once bytes came in order, and nothing else, for a round trip: until
// then another lost packet may be on its way, with nothing behind it to tell.
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

// deliver returns how many of the bytes that a program gets have not been
// behind the hole.
func (h *hole) deliver(bytes quantity.Bytes) quantity.Bytes {
	known := min(bytes, h.kept)
	h.kept -= known
	return bytes - known
}

// filled is how long it takes at least until a program gets what is behind the
// hole: the lost packet takes a round trip from when others came without it.
func (h *hole) filled(now, rtt time.Duration) time.Duration {
	if h.kept == 0 {
		return 0
	}
	return max(0, h.opened+rtt-now)
}
