// Package ranges keeps account of which bytes of a payload are assigned to
// requests and which have arrived.
package ranges

import "github.com/linklab/linklab/client/internal/quantity"

// Range is a run of bytes of a resource.
type Range struct {
	Offset, Length quantity.Bytes
}

// ToEnd is the length of a range to the end of what has an unknown size.
const ToEnd quantity.Bytes = 1 << 62

// End is the offset of the first byte after the range.
func (r Range) End() quantity.Bytes { return r.Offset + r.Length }

// Payload hands out the bytes of a payload, each once unless it is released,
// and knows which have not arrived.
type Payload struct {
	free, missing *Set
}

// NewPayload returns the account of the payload whole, of which have is there
// already.
func NewPayload(whole Range, have ...Range) *Payload {
	p := &Payload{free: NewSet(whole), missing: NewSet(whole)}
	for _, r := range have {
		p.free.Remove(r)
		p.missing.Remove(r)
	}
	return p
}

// Take assigns the first bytes that are free, clipped to those of one run and
// to those before limit. It reports false when there is nothing to assign.
func (p *Payload) Take(bytes, limit quantity.Bytes) (Range, bool) {
	r := p.free.First()
	r.Length = min(r.Length, bytes, limit-r.Offset)
	if r.Length <= 0 {
		return Range{}, false
	}
	p.free.Remove(r)
	return r, true
}

// TakeAll assigns the range, if all of it is free.
func (p *Payload) TakeAll(r Range) bool {
	if p.free.Below(r.End())-p.free.Below(r.Offset) < r.Length {
		return false
	}
	p.free.Remove(r)
	return true
}

// Release makes bytes that were taken and did not arrive free again.
func (p *Payload) Release(r Range) { p.free.Add(r) }

// Free is the number of bytes before limit that Take can assign.
func (p *Payload) Free(limit quantity.Bytes) quantity.Bytes { return p.free.Below(limit) }

// Arrived marks bytes that were taken as arrived, and returns how many of
// them were missing.
func (p *Payload) Arrived(r Range) quantity.Bytes { return p.missing.Remove(r) }

// Missing is the first run of bytes that has not arrived.
func (p *Payload) Missing() Range { return p.missing.First() }

// Have is what of the payload whole has arrived.
func (p *Payload) Have(whole Range) *Set {
	have := NewSet(whole)
	for _, r := range p.missing.Ranges() {
		have.Remove(r)
	}
	return have
}

// Complete reports whether every byte has arrived.
func (p *Payload) Complete() bool { return p.missing.First().Length == 0 }
