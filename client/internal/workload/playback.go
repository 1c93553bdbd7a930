package workload

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
)

// Thresholds are the limits of a player's buffer.
type Thresholds struct {
	// Start is what the player needs to begin, and to resume after its buffer was empty.
	Start quantity.Bytes
	// High is where the player stops reading, and Low where it resumes.
	Low, High quantity.Bytes
}

// Playback is a player's buffer over time. Bytes that arrive in order are played at the stream's
// rate. When the buffer is empty, the player waits for Thresholds.Start (GreenBag II-B). Times are
// since the first request, and never decrease.
type Playback struct {
	media      *Media
	thresholds Thresholds

	now      time.Duration
	received quantity.Bytes
	// played is the part of the stream that has been played, in the stream's time.
	played  time.Duration
	playing bool

	// Startup is the time until the playback began. Stalled is the time of all stalls.
	Startup, Stalled time.Duration
	// Stalls counts the stalls.
	Stalls int
	// Notice is called at every change between playing and waiting.
	Notice func(at time.Duration, playing bool)

	begun bool
	since time.Duration
}

// NewPlayback returns a player before its first byte.
func NewPlayback(m *Media, t Thresholds) *Playback {
	return &Playback{media: m, thresholds: t, Notice: func(time.Duration, bool) {}}
}

// Receive adds bytes that arrived at now.
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

// Buffered returns the bytes that arrived and were not played.
func (p *Playback) Buffered() quantity.Bytes { return p.received - p.consumed() }

// Rest returns how long the player may stop reading: until the buffer is down to Thresholds.Low. It
// returns 0 if the buffer is not full.
func (p *Playback) Rest(now time.Duration) time.Duration {
	p.advance(now)
	if p.Buffered() < p.thresholds.High {
		return 0
	}
	return p.media.Length(p.received-p.thresholds.Low) - p.played
}

// End returns when the last byte so far will have been played without further stalls.
func (p *Playback) End() time.Duration {
	return p.now + p.media.Length(p.received) - p.played
}
