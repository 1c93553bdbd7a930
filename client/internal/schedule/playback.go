package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Player is who plays the payload while it arrives. It begins, and goes on
// after an interruption, when Buffer has arrived beyond what it has played, or
// all (GreenBag II.B). The zero value is none.
type Player struct {
	Rate   quantity.Rate
	Buffer quantity.Bytes
}

// PlayerBuffer is how much is buffered before the playback begins (GreenBag
// IV.C).
const PlayerBuffer quantity.Bytes = 4_000_000

// playback is what a player has done, from what has arrived.
type playback struct {
	Player
	at      time.Duration
	arrived quantity.Bytes
	played  float64 // in bytes
	playing bool
}

// observe takes note of how much has arrived in order, and whether that is all.
func (p *playback) observe(now time.Duration, arrived quantity.Bytes, all bool) {
	if p.playing {
		p.played += p.Rate.Over(now - p.at)
	}
	p.at, p.arrived = now, arrived
	if p.played >= float64(arrived) {
		p.played, p.playing = float64(arrived), false
	}
	if all || p.buffered() >= float64(p.Buffer) {
		p.playing = true
	}
}

// buffered is what has arrived and was not played, in bytes.
func (p *playback) buffered() float64 { return float64(p.arrived) - p.played }

// lasts is how long the player can go on with so many bytes more than it has,
// in seconds.
func (p *playback) lasts(more quantity.Bytes) float64 {
	return (p.buffered() + float64(more)) / p.Rate.BytesPerSecond()
}
