package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// GreenBag streams over two links, here over any number (GreenBag IV.B). It divides each
// segment so that all links finish it together. The link that finishes first recovers the
// bytes that hold up the order. To save energy, it uses only the links that the playback
// needs.
type GreenBag struct {
	// SegmentSize is Z.
	SegmentSize quantity.Bytes
	// Player plays the payload. Without a player, the deadline is the time at which all
	// links end.
	Player Player
	// Model is the energy model of the radios. With it GreenBag saves energy (GB-E),
	// without it uses all links (GB-P).
	Model *energy.Model
	// Halves gives each link an equal share of every segment. NoRecovery leaves every
	// subsegment to its link. The paper compares GreenBag with these variants.
	Halves, NoRecovery bool
}

const (
	// recoveryWeight is w_r and modeWeight is w_e; both are not published. A recovery
	// begins when the playback would stall. All links are used again when the present
	// segment takes 0.8 of the time until then.
	recoveryWeight = 1.0
	modeWeight     = 0.8
	// modeMargin is the part of the playback's time in which one link must deliver the
	// rest to be chosen. A chosen link may need all of the time: otherwise a small change
	// of its goodput would wake the other link.
	modeMargin = 0.8
	// goodputWeight is α of the predictor (GreenBag IV.B).
	goodputWeight = 0.3
	// recoveryTrips is the cost of a recovery, in round trips of the link that loses its
	// connection: TCP, TLS and the request, and one until the close reaches the server.
	recoveryTrips = 4
	// leastShare is the smallest share of a segment, one packet.
	leastShare = SegmentSize
	// greenBagPeriod is the check interval of the mode.
	greenBagPeriod = 100 * time.Millisecond
)

// Next returns 0: links get parts of segments instead.
func (GreenBag) Next(int, Known) quantity.Bytes { return 0 }

func (g GreenBag) Plan() Plan {
	return &greenBag{GreenBag: g, player: playback{Player: g.Player}, alone: all}
}

type greenBag struct {
	GreenBag
	player playback
	// predicted is Ĝ of each link, 0 before its first finished subsegment.
	predicted []quantity.Rate
	finished  []int
	// alone is the only link in use, or all.
	alone int
	// arranging is true if the next check is for a new segment. Only then the number of
	// links in use may decrease.
	arranging bool
}

func (*greenBag) Every() time.Duration { return greenBagPeriod }

// Ahead returns pipe, so that the link never waits for the next answer.
func (*greenBag) Ahead(pipe quantity.Bytes) quantity.Bytes { return pipe }

// Segment returns the segment size. The mode may change at the next check.
func (g *greenBag) Segment(int, *Scene) quantity.Bytes {
	g.arranging = true
	return g.SegmentSize
}

// observe updates the player and the predicted goodput of the links.
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

// Use sets the mode: all links, or one link that delivers the rest in time for less energy.
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

// isLate reports whether the links in use no longer deliver the rest, or the next segment
// of the playback, in time.
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

// isInTime reports whether so many bytes arrive at a rate within a part of the time until
// the playback needs the last of them. The buffer grows or shrinks steadily, so all earlier
// bytes are in time, too.
func (g *greenBag) isInTime(part float64, bytes quantity.Bytes, rate quantity.Rate) bool {
	return part*g.player.lasts(bytes) > seconds(bytes, rate)
}

// choose returns the link that delivers the rest for the least energy without a stall, or
// all.
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

// margin returns the part of the time that link x may need. The only link in use may need
// all of it.
func (g *greenBag) margin(x int) float64 {
	if g.alone == x {
		return 1
	}
	return modeMargin
}

// all stands for all links in place of the index of one.
const all = -1

// joules returns the energy for the rest over one link, or over all: while they transmit,
// and for the tails of all radios that are or were awake. What the device draws whatever its
// links do does not count. known is false until every link has finished a subsegment.
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
	return joules + (g.Model.PowerMW(loads...)-g.Model.DeviceMW())*1e-3*seconds(s.Left, rate), true
}

// Share divides a segment so that the links in use finish it together (GreenBag equations 3
// and 4). It uses the goodput of their present subsegments. A link of unknown goodput gets
// the mean of the others.
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

// Recover reports whether the rest takes longer than the playback can wait.
func (g *greenBag) Recover(_, other int, rest quantity.Bytes, s *Scene) bool {
	if g.NoRecovery || g.alone != all {
		return false
	}
	price := recoveryTrips * s.Links[other].RTT
	slow := s.Progress[other]
	if slow.Goodput == 0 && slow.Silence <= price {
		return false // The goodput of the link is not known yet.
	}
	needed := seconds(rest, slow.Goodput)
	if needed < price.Seconds() {
		return false
	}
	return recoveryWeight*g.spare(s) <= needed
}

// spare returns how long the bytes in order may wait, in seconds: until the playback
// stalls, or without a player until no byte is free.
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

// seconds returns how long bytes take at a rate.
func seconds(bytes quantity.Bytes, rate quantity.Rate) float64 {
	if bytes == 0 {
		return 0
	}
	return float64(bytes) / rate.BytesPerSecond()
}
