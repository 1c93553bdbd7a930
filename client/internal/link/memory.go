package link

import (
	"net/netip"
	"sync"

	"github.com/linklab/linklab/client/internal/quantity"
)

const (
	// youngest is how many bytes a connection receives before its check for a path-MTU
	// black hole ends.
	youngest quantity.Bytes = 16 << 10
	// blackHoleAfter is how long nothing may arrive in order, in ms, before that counts as a black
	// hole. A connection that another way has overtaken gets no time.
	blackHoleAfter = 2000
	// mostAddresses limits how many addresses are remembered.
	mostAddresses = 1000
)

// Memory holds what the dialers of a link learn: the addresses of hosts, and the addresses
// that do not work well. The zero value is empty.
type Memory struct {
	mu    sync.Mutex
	names *names
	// late holds the addresses that others have overtaken. blackHoles holds the addresses that
	// only small segments reach.
	late, blackHoles map[netip.Addr]bool
	// young holds the wires of the connections that have received few bytes.
	young map[*wires]bool
}

// Moved tells that the link may be in another network. Names are resolved again. Older answers
// are used only if that fails.
func (m *Memory) Moved() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names != nil {
		m.names.expire()
	}
	m.late, m.blackHoles = nil, nil
}

// ways returns the ways to the addresses. Families alternate. Addresses that did not work well
// come last.
func (m *Memory) ways(addresses []netip.Addr, port uint16) (ways []way) {
	var well, badly []way
	for _, address := range alternating(addresses) {
		by := m.way(address, port)
		if by.small || m.wasLate(address) {
			badly = append(badly, by)
		} else {
			well = append(well, by)
		}
	}
	return append(well, badly...)
}

// alternating sorts addresses so that the families alternate (RFC 8305 4).
func alternating(addresses []netip.Addr) (mixed []netip.Addr) {
	var families [2][]netip.Addr
	for _, a := range addresses {
		of := 0
		if a.Is4() != addresses[0].Is4() {
			of = 1
		}
		families[of] = append(families[of], a)
	}
	for i := range addresses {
		for _, family := range families {
			if i < len(family) {
				mixed = append(mixed, family[i])
			}
		}
	}
	return mixed
}

// way returns the way to one address, after a check of its present connections.
func (m *Memory) way(address netip.Addr, port uint16) way {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ws := range m.young {
		if ws.address == address && ws.now.Load().isBlackHole(blackHoleAfter) {
			note(&m.blackHoles, address)
		}
	}
	return way{address, port, m.blackHoles[address]}
}

func (m *Memory) wasLate(address netip.Addr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.late[address]
}

func (m *Memory) noteLate(address netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note(&m.late, address)
}

func (m *Memory) noteBlackHole(address netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note(&m.blackHoles, address)
}

func note(in *map[netip.Addr]bool, address netip.Addr) {
	if *in == nil || len(*in) >= mostAddresses {
		*in = map[netip.Addr]bool{}
	}
	(*in)[address] = true
}

// add adds a new connection.
func (m *Memory) add(ws *wires) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.young == nil {
		m.young = map[*wires]bool{}
	}
	m.young[ws] = true
}

// remove removes a connection that has received many bytes, and works.
func (m *Memory) remove(ws *wires) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.young, ws)
}

// closing checks a connection before it is closed.
func (m *Memory) closing(ws *wires) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.young[ws] {
		return
	}
	delete(m.young, ws)
	if ws.now.Load().isBlackHole(blackHoleAfter) {
		note(&m.blackHoles, ws.address)
	}
}
