package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Player describes a program that plays the payload during the download. It starts,
// and resumes after a stall, when Buffer bytes ahead or the whole payload have arrived
// (GreenBag II.B). The zero value means no player.
type Player struct {
	Rate   quantity.Rate
	Buffer quantity.Bytes
}

// PlayerBuffer is the default of Player.Buffer (GreenBag IV.C).
const PlayerBuffer quantity.Bytes = 4_000_000

// playback follows a player by the bytes that have arrived.
type playback struct {
	Player
	at      time.Duration
	arrived quantity.Bytes
	played  float64 // in bytes
	playing bool
}

// observe records the bytes that have arrived in order at now, and whether the payload
// is complete.
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

// buffered returns the bytes that have arrived and were not played.
func (p *playback) buffered() float64 { return float64(p.arrived) - p.played }

// lasts returns for how many seconds the player can play what it has and so many bytes
// more.
func (p *playback) lasts(more quantity.Bytes) float64 {
	return (p.buffered() + float64(more)) / p.Rate.BytesPerSecond()
}
