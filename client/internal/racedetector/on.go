//go:build race

// Package racedetector tells tests whether the race detector is on, which makes them four to twenty
// times slower. Tests of many combinations then run a part of them.
package racedetector

// On is true if the race detector is on.
const On = true
