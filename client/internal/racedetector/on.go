//go:build race

// Package racedetector tells tests whether the race detector is on, beside which they
// take four to twenty times as long. Tests of many combinations then run a part of them.
package racedetector

// On says that the race detector is on.
const On = true
