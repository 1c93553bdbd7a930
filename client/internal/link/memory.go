package link

import (
	"net/netip"
	"sync"

	"github.com/linklab/linklab/client/internal/quantity"
)

const (
	// youngest is how little a connection has received, in bytes, that is looked at for a
	// path-MTU hole.
	youngest quantity.Bytes = 16 << 10
	// holeAfter is for how long nothing may have come in order, in ms, until that is taken
	// for a hole. A connection that another one has overtaken gets no time.
	holeAfter = 2000
	// mostAddresses bounds how many are remembered.
	mostAddresses = 1000
)

// Memory is what the dialers of a link learn: the addresses of hosts, and which
// addresses do not work well. The zero value is empty.
type Memory struct {
	mu    sync.Mutex
	names *names
	// late are the addresses that were overtaken by others, and holed those to which only
	// small segments get.
	late, holed map[netip.Addr]bool
	// young are the connections that have received little.
	young map[*Conn]bool
}

// Moved says that the link may be in another network. Names are asked for again, and
// older answers used only where that fails.
func (m *Memory) Moved() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names != nil {
		m.names.expire()
	}
	m.late, m.holed = nil, nil
}

// ways are those to the addresses: families alternate, and addresses that did not work
// well come last.
func (m *Memory) ways(addresses []netip.Addr, port string) (ways []way) {
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

// alternating are addresses of both families in turn (RFC 8305 4).
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

// way is that to one address, by what its connections show now.
func (m *Memory) way(address netip.Addr, port string) way {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.young {
		if c.address == address && c.isHoled(holeAfter) {
			note(&m.holed, address)
		}
	}
	return way{address, port, m.holed[address]}
}

func (m *Memory) wasLate(address netip.Addr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.late[address]
}

func (m *Memory) isLate(address netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note(&m.late, address)
}

func (m *Memory) hasHole(address netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note(&m.holed, address)
}

func note(in *map[netip.Addr]bool, address netip.Addr) {
	if *in == nil || len(*in) >= mostAddresses {
		*in = map[netip.Addr]bool{}
	}
	(*in)[address] = true
}

// born takes note of a new connection.
func (m *Memory) born(c *Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.young == nil {
		m.young = map[*Conn]bool{}
	}
	m.young[c] = true
}

// grown forgets a connection that has received much, and works.
func (m *Memory) grown(c *Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.young, c)
}

// leaves looks at a connection that is about to be closed.
func (m *Memory) leaves(c *Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.young[c] {
		return
	}
	delete(m.young, c)
	if c.isHoled(holeAfter) {
		note(&m.holed, c.address)
	}
}

// isHoled reports whether small segments get through and full ones do not: for so many
// milliseconds only later bytes have come, in small segments, or only later ones were
// acknowledged, whatever was sent again.
func (c *Conn) isHoled(silence uint32) bool {
	info, err := c.info()
	if err != nil {
		return false
	}
	receives := info.Advmss > smallSegment && info.Rcv_mss <= smallSegment &&
		info.Rcv_ooopack > 0 && info.Unacked == 0 && info.Last_data_sent >= silence
	sends := info.Snd_mss > smallSegment && info.Sacked > 0 && info.Last_ack_recv >= silence && info.Retransmits > 0
	return receives || sends
}
