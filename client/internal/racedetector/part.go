package racedetector

// Part is how many of n random cases a test runs: a third with the race detector, else all.
func Part(n uint64) uint64 {
	if On {
		return (n + 2) / 3
	}
	return n
}
