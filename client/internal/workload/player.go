package workload

import (
	"context"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
)

// Player plays the file in order as a stream while it arrives.
type Player struct {
	Media      *Media
	Thresholds Thresholds
	// Segments are its requests, one after another. With a full buffer it sends no request. If
	// there is only one request, it stops reading instead.
	Segments []ranges.Range
}

func (Player) Name() string { return "player" }

func (Player) connections() int { return 1 }

func (w Player) run(ctx context.Context, s *session) (Figures, error) {
	p := &player{session: s, playback: NewPlayback(w.Media, w.Thresholds)}
	p.playback.Notice = p.note
	for i, segment := range w.Segments {
		if i > 0 {
			if err := p.rest(ctx); err != nil {
				return nil, err
			}
		}
		left := segment.Length
		_, err := s.fetch(ctx, message{number: i + 1, part: segment}, func(piece []byte) error {
			p.last = s.now()
			p.playback.Receive(p.last, quantity.Bytes(len(piece)))
			left -= quantity.Bytes(len(piece))
			if err := s.add(piece); err != nil || len(w.Segments) > 1 || left == 0 {
				return err
			}
			return p.rest(ctx)
		})
		if err != nil {
			return nil, err
		}
	}
	return Figures{
		"startup_s":     p.playback.Startup.Seconds(),
		"interruptions": float64(p.playback.Stalls),
		"interrupted_s": p.playback.Stalled.Seconds(),
		"playback_s":    p.playback.End().Seconds(),
	}, nil
}

// player is a running Player.
type player struct {
	*session
	playback *Playback
	// last is the time of the last bytes.
	last time.Duration
}

// rest waits while the buffer is full.
func (p *player) rest(ctx context.Context) error {
	now := p.now()
	pause := p.playback.Rest(now)
	if pause == 0 {
		return nil
	}
	p.state(now, rundir.Paused)
	if err := p.sleep(ctx, now+pause); err != nil {
		return err
	}
	now = p.now()
	p.playback.Rest(now)
	p.state(now, rundir.Reading)
	return nil
}

func (p *player) note(at time.Duration, playing bool) {
	if playing {
		p.state(at, rundir.Playing)
	} else {
		p.state(at, rundir.Stalled)
	}
}

func (p *player) state(at time.Duration, state string) {
	p.record(at, &rundir.PlayerState{State: state, Buffered: int64(p.playback.Buffered())})
}
