package link

// Change is a change of a network device.
type Change int

const (
	// Down means that nothing can pass: there is no carrier, or no device.
	Down Change = iota
	// Up means that a connection may work that did not work before: there is a carrier, a
	// new address or a new route.
	Up
	// Better means that the signal is much better than before.
	Better
)

func (c Change) String() string { return [...]string{"down", "up", "better"}[c] }
