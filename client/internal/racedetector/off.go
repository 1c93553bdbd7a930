//go:build !race

package racedetector

// On is true if the race detector is on.
const On = false
