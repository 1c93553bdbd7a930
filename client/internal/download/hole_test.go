package download

import (
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
)

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
		if came := h.look(step.received, step.outOfOrder); came != step.came || h.kept != step.kept {
			t.Errorf("%d came and %d are kept, want %d and %d", came, h.kept, step.came, step.kept)
		}
	}
	if first, second := h.deliver(20_000), h.deliver(30_000); first != 0 || second != 6560 {
		t.Errorf("of what comes in order then %d and %d are new, want 0 and 6560", first, second)
	}
}

// One of two lost packets comes: what is behind the other is still kept. Once
// nothing came out of order any more while bytes came in order, nothing is.
func TestAHoleIsClosedWhenBytesComeInOrder(t *testing.T) {
	h := &hole{}
	h.look(1000, 10)
	h.deliver(4480)
	if h.look(5480, 12); h.kept != 10_000+2*segmentSize {
		t.Errorf("%d bytes are kept behind the second", h.kept)
	}
	if h.look(9000, 12); h.kept != 0 {
		t.Errorf("%d bytes are kept behind nothing", h.kept)
	}
	if got := h.deliver(5000); got != 5000 {
		t.Errorf("%d of 5000 bytes are new", got)
	}
}
