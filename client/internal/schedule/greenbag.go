package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// GreenBag streams over two links (GreenBag IV.B; here over any number): it
// divides each segment so that all links end with it together, has the link
// that ends first recover what holds up the bytes in order, and, if it is to
// save energy, goes on with as few links as the playback needs.
type GreenBag struct {
	// SegmentSize is Z.
	SegmentSize quantity.Bytes
	// Player is who plays the payload. Without one, what must not be missed is
	// the time at which all links end.
	Player Player
	// Model is what links draw. With it GreenBag saves energy (GB-E), without
	// it is as fast as it can (GB-P).
	Model *energy.Model
	// Halves gives each link the same share of every segment, and NoRecovery
	// leaves every subsegment to its link: what the paper compares itself with.
	Halves, NoRecovery bool
}

const (
	// recoveryWeight is w_r and modeWeight w_e, which are not published: a
	// recovery when the playback would stop, and all links again when the
	// present segment takes four fifths of the time until then.
	recoveryWeight = 1.0
	modeWeight     = 0.8
	// modeMargin is how much of the time that the playback leaves one link may
	// take for the rest when it is chosen. It goes on until it would take all of
	// it: otherwise a small change of its goodput would wake the other one.
	modeMargin = 0.8
	// goodputWeight is α of the predictor (GreenBag IV.B).
	goodputWeight = 0.3
	// recoveryTrips is what a recovery costs, in round trips of the link that
	// loses its connection: those of TCP, TLS and the request, and one until
	// the close has reached the server.
	recoveryTrips = 4
	// leastShare is the least of a segment that a link gets: a packet.
	leastShare = SegmentSize
	// greenBagPeriod is how often the chosen mode is checked.
	greenBagPeriod = 100 * time.Millisecond
)

// Next makes it a Scheduler. Links get subsegments instead.
func (GreenBag) Next(int, Known) quantity.Bytes { return 0 }

// Plan makes it a Planner.
func (g GreenBag) Plan() Plan {
	return &greenBag{GreenBag: g, player: playback{Player: g.Player}, alone: all}
}

type greenBag struct {
	GreenBag
	player playback
	// predicted is Ĝ of each link, from its first finished subsegments.
	predicted []quantity.Rate
	finished  []int
	// alone is the link that is used alone; all if there is none.
	alone int
	// arranging says that the next look is for a new segment: only then fewer
	// links may be chosen.
	arranging bool
}

func (*greenBag) Every() time.Duration { return greenBagPeriod }

// Ahead sends a link's next request a little before its present one ends.
func (*greenBag) Ahead(pipe quantity.Bytes) quantity.Bytes { return pipe }

// Segment begins to arrange a segment: the mode may change.
func (g *greenBag) Segment(int, *Scene) quantity.Bytes {
	g.arranging = true
	return g.SegmentSize
}

// observe follows the player and the links.
func (g *greenBag) observe(s *Scene) {
	if g.Player.Rate > 0 && s.Payload > 0 {
		g.player.observe(s.Now, s.InOrder-s.Start, s.Left == 0)
	}
	if g.predicted == nil {
		g.predicted, g.finished = make([]quantity.Rate, len(s.Progress)), make([]int, len(s.Progress))
	}
	for x, p := range s.Progress {
		switch {
		case p.Finished == g.finished[x] || p.Goodput == 0:
			continue
		case g.predicted[x] == 0:
			g.predicted[x] = p.Goodput
		default:
			g.predicted[x] = goodputWeight*p.Goodput + (1-goodputWeight)*g.predicted[x]
		}
		g.finished[x] = p.Finished
	}
}

// Use is the mode: all links, or one that brings the rest in time for less.
func (g *greenBag) Use(s *Scene, use []bool) {
	g.observe(s)
	if g.Model == nil {
		useAll(use)
		return
	}
	if g.alone != all && g.isLate(s, use) {
		g.alone = all
		useAll(use)
		return
	}
	if g.arranging {
		g.arranging = false
		g.alone = g.choose(s)
	}
	for x := range use {
		use[x] = g.alone == all || g.alone == x
	}
}

// isLate reports whether the links in use no longer bring the rest, or the
// segment that the playback is to have next, in time.
func (g *greenBag) isLate(s *Scene, use []bool) bool {
	var predicted, goodput quantity.Rate
	var segment quantity.Bytes
	for x, p := range s.Progress {
		if use[x] {
			predicted += g.predicted[x]
			goodput += p.Goodput
			segment += p.Unfinished
		}
	}
	return !g.isInTime(1, s.Left, predicted) || modeWeight*g.player.lasts(0) <= seconds(segment, goodput)
}

// isInTime reports whether so many bytes come at a rate in a part of the time
// until the playback needs the last of them. What is so of the last one is so of
// all before: the buffer shrinks or grows steadily.
func (g *greenBag) isInTime(part float64, bytes quantity.Bytes, rate quantity.Rate) bool {
	return part*g.player.lasts(bytes) > seconds(bytes, rate)
}

// choose is the link that brings the rest for the least energy without an
// interruption, or all.
func (g *greenBag) choose(s *Scene) int {
	if !g.player.playing {
		return all
	}
	best, least := all, math.Inf(1)
	for x := all; x < len(s.Progress); x++ {
		joules, ok := g.joules(x, s)
		if !ok {
			return all
		}
		inTime := x == all || s.Progress[x].Usable && g.isInTime(g.margin(x), s.Left, g.predicted[x])
		if inTime && joules < least {
			best, least = x, joules
		}
	}
	return best
}

// margin is the part of the time that link x may take: one that is used alone
// already may take all.
func (g *greenBag) margin(x int) float64 {
	if g.alone == x {
		return 1
	}
	return modeMargin
}

// all stands for all links together, where else there is one.
const all = -1

// joules is what it costs to bring the rest over one link, or over all: while
// they transmit, and in the tails of those that do or are not asleep yet. What
// the device draws anyhow does not count. It is not known before every link has
// brought a subsegment.
func (g *greenBag) joules(only int, s *Scene) (joules float64, known bool) {
	loads := make([]energy.Load, 0, len(s.Progress))
	var rate quantity.Rate
	for x, p := range s.Progress {
		if g.predicted[x] == 0 {
			return 0, false
		}
		radio := g.Model.Radios[p.Kind]
		if only == all || x == only {
			loads = append(loads, energy.Load{Radio: radio, Rate: g.predicted[x]})
			rate += g.predicted[x]
		}
		if only == all || x == only || p.Silence < radio.TailTime() {
			joules += radio.TailJoules(math.MaxInt64)
		}
	}
	return joules + (g.Model.PowerMW(loads...)-g.Model.BaseMW)*1e-3*seconds(s.Left, rate), true
}

// Share is what makes the links that are used end with the segment together
// (GreenBag equations 3 and 4), by the goodput of their present subsegments. A
// link of which nothing is known is taken for as fast as the mean of the
// others.
func (g *greenBag) Share(x int, segment quantity.Bytes, s *Scene, shares []quantity.Bytes) {
	rates := make([]float64, len(shares))
	var sum float64
	var known, used int
	var unfinished quantity.Bytes
	for i, p := range s.Progress {
		if !p.Usable || s.Links[i].Spared {
			rates[i] = -1
			continue
		}
		used++
		if i != x {
			unfinished += p.Unfinished
		}
		if rates[i] = float64(p.Goodput); rates[i] > 0 {
			sum += rates[i]
			known++
		}
	}
	unknown := 1.0
	if known > 0 {
		unknown = sum / float64(known)
	}
	sum = 0
	for i := range rates {
		if rates[i] == 0 || g.Halves && rates[i] > 0 {
			rates[i] = unknown
		}
		sum += max(0, rates[i])
	}
	left := segment
	for i := range shares {
		shares[i] = 0
		if rates[i] < 0 || i == x {
			continue
		}
		share := rates[i]/sum*float64(segment+unfinished) - float64(s.Progress[i].Unfinished)
		if g.Halves {
			share = float64(segment) / float64(used)
		}
		if whole := min(quantity.Bytes(share), left-leastShare); whole >= leastShare {
			shares[i] = whole
			left -= whole
		}
	}
	shares[x] = left
}

// Recover compares what the playback has with what the rest takes.
func (g *greenBag) Recover(_, other int, rest quantity.Bytes, s *Scene) bool {
	if g.NoRecovery || g.alone != all {
		return false
	}
	price := recoveryTrips * s.Links[other].RTT
	slow := s.Progress[other]
	if slow.Goodput == 0 && slow.Silence <= price {
		return false // nothing is known of it yet
	}
	needed := seconds(rest, slow.Goodput)
	if needed < price.Seconds() {
		return false
	}
	return recoveryWeight*g.spare(s) <= needed
}

// spare is how long the bytes in order may wait, in seconds: until the playback
// stops, or all links have nothing else to do.
func (g *greenBag) spare(s *Scene) float64 {
	if g.Player.Rate > 0 {
		return g.player.lasts(0)
	}
	var sum quantity.Rate
	for _, p := range s.Progress {
		sum += p.Goodput
	}
	return seconds(s.Free, sum)
}

// seconds is how long bytes take at a rate.
func seconds(bytes quantity.Bytes, rate quantity.Rate) float64 {
	if bytes == 0 {
		return 0
	}
	return float64(bytes) / rate.BytesPerSecond()
}
