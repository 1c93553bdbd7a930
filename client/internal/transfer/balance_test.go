package transfer

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

// Only new bytes are progress. While an answer repeats what is there, the time stands; between answers
// it runs.
func TestProgressIsWhatIsNew(t *testing.T) {
	var b Balance
	b.Has(ranges.Range{Length: 100})
	for i, step := range []struct {
		part       ranges.Range
		since, now time.Duration
		fresh      quantity.Bytes
		moved      time.Duration
	}{
		{ranges.Range{Offset: 50, Length: 100}, 1, 1, 50, 1},
		{ranges.Range{Length: 50}, 11, 11, 0, 1},              // Another answer begins.
		{ranges.Range{Offset: 50, Length: 50}, 11, 15, 0, 5},  // It goes on.
		{ranges.Range{Offset: 100, Length: 50}, 11, 16, 0, 6}, // It ends here.
		{ranges.Range{Length: 150}, 30, 31, 0, 7},
		{ranges.Range{Offset: 149, Length: 2}, 30, 32, 1, 32},
	} {
		if fresh := b.Arrived(step.part, step.since, step.now); fresh != step.fresh || b.Moved != step.moved {
			t.Errorf("step %d: %d new bytes, progress at %d; want %d, %d", i, fresh, b.Moved, step.fresh, step.moved)
		}
	}
}

// raceLead is what a link brings in a race of unknown size.
const raceLead quantity.Bytes = 4 << 20

// A transfer may cost three times the file and a little. Of two links both may begin.
func TestWhatATransferMayCost(t *testing.T) {
	for _, test := range []struct {
		size, received, more quantity.Bytes
		pays, isOver         bool
	}{
		{10e6, 0, 20e6, true, false},
		{10e6, 10e6, 20e6, false, false},
		{10e6, 30e6, 0, false, false},
		{10e6, 31e6, 0, false, true},
		{0, 0, 2 * raceLead, true, false},
		{0, 0, 4 * raceLead, false, false},
		{0, 3*leastFile + slack + 1, 0, false, true},
	} {
		var b Balance
		b.Expect(test.size)
		b.Closed(test.received)
		if pays := b.CanPay(test.more, 0); pays != test.pays {
			t.Errorf("%+v: it can pay: %v", test, pays)
		}
		if _, _, isOver := b.IsOver(0); isOver != test.isOver {
			t.Errorf("%+v: it is over: %v", test, isOver)
		}
	}
}

// Ranges are dear once half of what may arrive has arrived, unless the rest costs less than what is left. A whole
// answer that comes before the client can drop it is paid once.
func TestWhenRangesAreDear(t *testing.T) {
	for _, test := range []struct {
		size, moved, have quantity.Bytes
		isDear            bool
	}{
		{4_317_170, 6_741_059, 2_456_652, false}, // A whole answer, and then what was asked for.
		{4_317_170, 6_741_059, 1_000_000, true},
		{4_317_170, 6_000_000, 1_000_000, false}, // Not yet half.
		{4_317_170, 7_000_000, 0, true},
		{4_317_170, 12_000_000, 4_317_169, false},
	} {
		var b Balance
		b.Expect(test.size)
		b.Arrived(ranges.Range{Length: test.have}, 0, 0)
		b.Closed(test.moved - 1000)
		if isDear := b.IsDear(1000); isDear != test.isDear {
			t.Errorf("%+v: dear: %v", test, isDear)
		}
	}
}

// Asked in another way, a server may send the file once more, and must fail again.
func TestAnotherWayIsGranted(t *testing.T) {
	var b Balance
	b.Expect(10e6)
	b.Closed(40e6)
	b.Failed()
	b.Failed()
	if _, _, isOver := b.IsOver(0); !isOver || !b.MayEnd() {
		t.Error("40 MB for a file of 10 are not too much")
	}
	if b.Grant(1e6); !b.IsDear(0) {
		t.Error("40 MB for a file of 10 are not dear")
	}
	if _, _, isOver := b.IsOver(11e6); isOver || b.MayEnd() {
		t.Error("the file may not come once more")
	}
	if _, _, isOver := b.IsOver(1e6 + 10e6 + slack + 1); !isOver {
		t.Error("the file may come twice more")
	}
}
