package transfer

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
)

const (
	// mostCopies is how often the bytes of a file may arrive, and slack how many bytes may come
	// on top, until a download counts as one that never ends. Half of 1 MB is left for headers
	// and for what is under way at the end.
	mostCopies                = 3
	slack      quantity.Bytes = 500_000
	// leastFailures is how many answers fail at least before a download that costs too much ends.
	leastFailures = 2
	// leastFile is the size that is assumed, in bytes, of a file of unknown size.
	leastFile quantity.Bytes = 4 << 20
)

// Balance is the account of a transfer: what arrived, and what of it was new. Bytes are new if
// none at their offset arrived before. Only new bytes are progress.
type Balance struct {
	// have is where bytes arrived, or were at the beginning.
	have ranges.Set
	// size is how many bytes are expected, 0 if unknown.
	size quantity.Bytes
	// received counts the bytes of bodies that arrived on connections that ended.
	received quantity.Bytes
	// failures counts the answers that failed, and granted is what had moved at the last Grant.
	failures int
	granted  quantity.Bytes
	// Moved is when the transfer made progress last, and heard when anything arrived last.
	Moved, heard time.Duration
}

// Has adds bytes that were there at the beginning.
func (b *Balance) Has(have ...ranges.Range) {
	for _, r := range have {
		b.have.Add(r)
	}
}

// Arrived counts bytes that arrive at a time, and returns how many of them are new. They belong to
// an answer that began at since. An answer may repeat what is there until it gets beyond it: the
// time during which it brings repeated bytes is no progress, and no standstill either.
func (b *Balance) Arrived(r ranges.Range, since, now time.Duration) (fresh quantity.Bytes) {
	fresh = b.have.Add(r)
	b.heard = max(b.heard, since)
	b.Came(fresh, now)
	return fresh
}

// Came takes note that something moves at a time, and how much of it is new.
func (b *Balance) Came(fresh quantity.Bytes, now time.Duration) {
	if fresh > 0 {
		b.Moved = now
	} else {
		b.Moved += now - max(b.heard, b.Moved)
	}
	b.heard = now
}

// Sent counts bytes that are on their way, and returns how many of them are new. Came tells when
// they get there.
func (b *Balance) Sent(r ranges.Range) (fresh quantity.Bytes) {
	b.received += r.Length
	return b.have.Add(r)
}

// Failed counts an answer that failed.
func (b *Balance) Failed() { b.failures++ }

// MayEnd reports whether answers failed again and again. If none does, what arrives several times was
// asked for several times: on a fast link the whole file may come before another answer to it is dropped.
func (b *Balance) MayEnd() bool { return b.failures >= leastFailures }

// Closed counts what a connection brought that has ended.
func (b *Balance) Closed(bodies quantity.Bytes) { b.received += bodies }

// Expect sets how many bytes are expected. A size of 0 or less is unknown.
func (b *Balance) Expect(size quantity.Bytes) {
	if size > 0 {
		b.size = size
	}
}

// most returns how many bytes may arrive until a transfer fails.
func (b *Balance) most() quantity.Bytes {
	if b.size > 0 {
		return mostCopies*b.size + slack
	}
	return mostCopies*max(b.have.Bytes(), leastFile) + slack
}

// whole returns the size of the file, as far as it is known.
func (b *Balance) whole() quantity.Bytes { return max(b.size, b.have.Bytes()) }

// CanPay reports whether so many more bytes may arrive, and all of the file after them. open is
// what open connections have brought.
func (b *Balance) CanPay(more, open quantity.Bytes) bool {
	return b.received+open+more+b.whole() <= b.most()
}

// Grant lets the file move once more, whatever it cost before: the server is asked in another way.
// open is as in CanPay.
func (b *Balance) Grant(open quantity.Bytes) { b.granted, b.failures = b.received+open, 0 }

// IsDear reports whether half of what may arrive has arrived, and the rest of the file would at the
// price so far cost more than may still arrive: it is time to ask in another way. open is as in CanPay.
func (b *Balance) IsDear(open quantity.Bytes) bool {
	moved, have := b.received+open, b.have.Bytes()
	missing, left := b.whole()-have, b.most()-moved
	return left < b.most()/2 && float64(missing)*float64(moved) > float64(left)*float64(have)
}

// IsOver reports whether too many bytes have moved, how many these are, and how many were new. open
// is as in CanPay.
func (b *Balance) IsOver(open quantity.Bytes) (moved, fresh quantity.Bytes, isOver bool) {
	moved = b.received + open
	isOver = moved > b.most() && moved-b.granted > b.whole()+slack
	return moved, min(moved, b.have.Bytes()), isOver
}
