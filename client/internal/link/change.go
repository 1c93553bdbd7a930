package link

// Change is what happens to a network device.
type Change int

const (
	// Down says that nothing can pass: there is no carrier, or no device.
	Down Change = iota
	// Up says that something may pass that could not before: there is a
	// carrier, another address or another route.
	Up
	// Better says that the signal is much better than it was.
	Better
)

func (c Change) String() string { return [...]string{"down", "up", "better"}[c] }
