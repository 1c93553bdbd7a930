// Package ranges keeps account of which bytes of a payload are assigned to
// requests and which have arrived.
package ranges

// Range is a run of bytes of the payload.
type Range struct {
	Offset, Length int64
}

// End is the offset of the first byte after the range.
func (r Range) End() int64 { return r.Offset + r.Length }

// Payload hands out the bytes of a payload in ascending order, each once, and
// counts those that have arrived.
type Payload struct {
	size, assigned, arrived int64
}

// NewPayload returns the account of a payload of size bytes, none assigned.
func NewPayload(size int64) *Payload { return &Payload{size: size} }

// Take assigns the next bytes, clipped to those that are left. It reports
// false when there is nothing to assign.
func (p *Payload) Take(bytes int64) (Range, bool) {
	bytes = min(bytes, p.Unassigned())
	if bytes <= 0 {
		return Range{}, false
	}
	r := Range{Offset: p.assigned, Length: bytes}
	p.assigned += bytes
	return r, true
}

// Unassigned is the number of bytes not yet taken.
func (p *Payload) Unassigned() int64 { return p.size - p.assigned }

// Arrived marks a whole range that was taken as arrived.
func (p *Payload) Arrived(r Range) { p.arrived += r.Length }

// Complete reports whether every byte has arrived.
func (p *Payload) Complete() bool { return p.arrived == p.size }
