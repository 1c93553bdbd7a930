// Package ranges records which bytes of a payload are assigned to requests, and which have arrived.
package ranges

import "github.com/linklab/linklab/client/internal/quantity"

// Range is a contiguous range of bytes of a resource.
type Range struct {
	Offset, Length quantity.Bytes
}

// ToEnd is the length of a range to the end of a resource of unknown size.
const ToEnd quantity.Bytes = 1 << 62

// End returns the offset of the first byte after the range.
func (r Range) End() quantity.Bytes { return r.Offset + r.Length }

// Payload assigns the bytes of a payload, each once unless it is released. It records which bytes
// are missing.
type Payload struct {
	free, missing *Set
}

// NewPayload returns the Payload for the range whole, without the bytes that have arrived already.
func NewPayload(whole Range, have ...Range) *Payload {
	p := &Payload{free: NewSet(whole), missing: NewSet(whole)}
	for _, r := range have {
		p.free.Remove(r)
		p.missing.Remove(r)
	}
	return p
}

// Take assigns the first free bytes: at most one contiguous range, before limit. It returns false
// if there are none.
func (p *Payload) Take(bytes, limit quantity.Bytes) (Range, bool) {
	r := p.free.First()
	r.Length = min(r.Length, bytes, limit-r.Offset)
	if r.Length <= 0 {
		return Range{}, false
	}
	p.free.Remove(r)
	return r, true
}

// TakeAll assigns the range if all of it is free.
func (p *Payload) TakeAll(r Range) bool {
	if p.free.Below(r.End())-p.free.Below(r.Offset) < r.Length {
		return false
	}
	p.free.Remove(r)
	return true
}

// TakeBeginning assigns the beginning of r, as far as it is free, and returns its length.
func (p *Payload) TakeBeginning(r Range) (length quantity.Bytes) {
	for _, free := range p.free.Ranges() {
		if free.Offset <= r.Offset && r.Offset < free.End() {
			length = min(r.End(), free.End()) - r.Offset
			p.free.Remove(Range{Offset: r.Offset, Length: length})
		}
	}
	return max(0, length)
}

// Release makes assigned bytes that did not arrive free again.
func (p *Payload) Release(r Range) { p.free.Add(r) }

// Free returns the number of bytes before limit that Take can assign.
func (p *Payload) Free(limit quantity.Bytes) quantity.Bytes { return p.free.Below(limit) }

// Arrived marks assigned bytes as arrived, and returns how many of them were missing.
func (p *Payload) Arrived(r Range) quantity.Bytes { return p.missing.Remove(r) }

// Lacks reports whether the byte at an offset is missing.
func (p *Payload) Lacks(offset quantity.Bytes) bool {
	return p.missing.Below(offset+1) > p.missing.Below(offset)
}

// Missing returns the first contiguous range of missing bytes.
func (p *Payload) Missing() Range { return p.missing.First() }

// Have returns the bytes of whole that have arrived.
func (p *Payload) Have(whole Range) *Set {
	have := NewSet(whole)
	for _, r := range p.missing.Ranges() {
		have.Remove(r)
	}
	return have
}

// Complete reports whether every byte has arrived.
func (p *Payload) Complete() bool { return p.missing.First().Length == 0 }
