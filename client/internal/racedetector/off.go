//go:build !race

package racedetector

// On says that the race detector is on.
const On = false
