package download

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/tests/testkit"
)

const rtt = 40 * time.Millisecond

// A packet is lost, 30 come behind it, and then it comes, with all of them.
func TestWhatIsBehindALostPacketCountsWhenItComes(t *testing.T) {
	h := &hole{}
	for _, step := range []struct {
		received   quantity.Bytes
		outOfOrder uint32
		came, kept quantity.Bytes
	}{
		{100_000, 0, 0, 0},
		{100_000, 10, 14_480, 14_480},
		{100_000, 30, 28_960, 43_440},
	} {
		testkit.Same(t, h.look(step.received, step.outOfOrder, 0, rtt), step.came, "bytes that came")
		testkit.Same(t, h.kept, step.kept, "kept bytes")
	}
	testkit.Holds(t, h.deliver(20_000) == 0 && h.deliver(30_000) == 6560, "new bytes of what comes in order then")
}

// One of two lost packets comes, and what was between them: what is behind the other is still kept, also while nothing
// follows. Once bytes came in order alone for a round trip, nothing is.
func TestAHoleIsClosedWhenBytesComeInOrderForARoundTrip(t *testing.T) {
	h := &hole{}
	h.look(1000, 10, 0, rtt)
	h.deliver(4480)
	for _, step := range []struct {
		received   quantity.Bytes
		outOfOrder uint32
		now        time.Duration
		kept       quantity.Bytes
	}{
		{5480, 12, 10 * time.Millisecond, 10_000 + 2*schedule.SegmentSize},
		{9000, 12, 10*time.Millisecond + rtt, 10_000 + 2*schedule.SegmentSize},
		{9000, 12, 11*time.Millisecond + rtt, 10_000 + 2*schedule.SegmentSize},
		{9500, 12, 12*time.Millisecond + rtt, 0},
	} {
		h.look(step.received, step.outOfOrder, step.now, rtt)
		testkit.Same(t, h.kept, step.kept, "kept bytes", step.now)
	}
	testkit.Same(t, h.deliver(5000), 5000, "new bytes")
}

// A program gets nothing of what is behind a lost packet before that was sent again.
func TestWhatIsBehindALostPacketIsNotReadForARoundTrip(t *testing.T) {
	h := &hole{}
	testkit.Same(t, h.filled(0, rtt), 0, "no hole")
	h.look(1000, 5, 10*time.Millisecond, rtt)
	h.look(1000, 9, 30*time.Millisecond, rtt)
	for now, want := range map[time.Duration]time.Duration{10: 40, 30: 20, 50: 0, 60: 0} {
		testkit.Same(t, h.filled(now*time.Millisecond, rtt), want*time.Millisecond, "milliseconds", now)
	}
}
