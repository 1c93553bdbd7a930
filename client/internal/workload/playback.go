package workload

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Thresholds of a player's buffer.
type Thresholds struct {
	// Start is what playing needs to begin, and to go on once the buffer has
	// run empty.
	Start quantity.Bytes
	// High is where the player stops reading, and Low where it goes on.
	Low, High quantity.Bytes
}

// Playback is a player's buffer over time: what arrives in order is played at
// the stream's pace. While it is empty the player waits for Thresholds.Start
// (GreenBag II-B). Times are since the first request; they never go back.
type Playback struct {
	media      *Media
	thresholds Thresholds

	now      time.Duration
	received quantity.Bytes
	// played is how much of the stream has been played, as its own time.
	played  time.Duration
	playing bool

	// Startup is until playing began, Stalled how long it then stood still.
	Startup, Stalled time.Duration
	// Stalls counts how often.
	Stalls int
	// Notice is told of every change between playing and waiting.
	Notice func(at time.Duration, playing bool)

	begun bool
	since time.Duration
}

// NewPlayback is a player before its first byte.
func NewPlayback(m *Media, t Thresholds) *Playback {
	return &Playback{media: m, thresholds: t, Notice: func(time.Duration, bool) {}}
}

// Receive adds bytes that arrived now.
func (p *Playback) Receive(now time.Duration, bytes quantity.Bytes) {
	p.advance(now)
	p.received += bytes
	whole := p.received >= p.media.size
	if p.playing || p.received-p.consumed() < p.thresholds.Start && !whole {
		return
	}
	if p.begun {
		p.Stalled += now - p.since
	} else {
		p.begun, p.Startup = true, now
	}
	p.playing = true
	p.Notice(now, true)
}

// advance plays until now, or until the buffer is empty.
func (p *Playback) advance(now time.Duration) {
	passed := now - p.now
	p.now = now
	if !p.playing {
		return
	}
	left := p.media.Length(p.received) - p.played
	p.played += min(passed, left)
	if passed <= left || p.received >= p.media.size {
		return
	}
	p.playing, p.since = false, now-(passed-left)
	p.Stalls++
	p.Notice(p.since, false)
}

func (p *Playback) consumed() quantity.Bytes { return p.media.Bytes(p.played) }

// Buffered is what has arrived and is not played yet.
func (p *Playback) Buffered() quantity.Bytes { return p.received - p.consumed() }

// Rest is for how long the player may stop reading now: until the buffer is
// down to Thresholds.Low; 0 if it is not full.
func (p *Playback) Rest(now time.Duration) time.Duration {
	p.advance(now)
	if p.Buffered() < p.thresholds.High {
		return 0
	}
	return p.media.Length(p.received-p.thresholds.Low) - p.played
}

// End is when the last byte that arrived will have been played, if nothing more
// has to wait.
func (p *Playback) End() time.Duration {
	return p.now + p.media.Length(p.received) - p.played
}
