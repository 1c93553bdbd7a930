package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// EMPTCP is eMPTCP (eMPTCP 3) above HTTP: Wi-Fi alone at first, LTE when it has
// shown that it is worth waking, and then whatever the Energy Information Base
// says costs less per byte. The links that are used get requests as in Alg1,
// small enough to leave a link soon.
type EMPTCP struct {
	// Sizes are those of the requests.
	Sizes Alg1
	// Model is what links draw.
	Model *energy.Model
}

const (
	// delayBytes is κ: LTE is not used before Wi-Fi has brought that much, or
	// delayTime, τ, has passed (eMPTCP 4.1).
	delayBytes quantity.Bytes = 1_000_000
	delayTime                 = 3 * time.Second
	// samples is φ, how many samples of Wi-Fi τ must leave time for, one each
	// round trip, and firstWindow what TCP sends in the first round trip, in bytes.
	samples     = 10
	firstWindow = initialWindow
	// unknownRate is what a link is taken for that was never used (eMPTCP 3.2).
	unknownRate quantity.Rate = 5e6
	// looking is the time between looks at the links.
	looking = 50 * time.Millisecond
	// leastSample is ten packets. A sample of fewer is not as exact as the margin
	// that it is held against, and waits for more, up to φ round trips.
	leastSample quantity.Bytes = 10 * SegmentSize
)

// Next is what Alg1 says of the links that are used.
func (e EMPTCP) Next(x int, known Known) quantity.Bytes {
	at, used := known.usedOnly(x)
	return e.Sizes.Next(at, used)
}

// Plan makes it a Planner.
func (e EMPTCP) Plan() Plan { return &emptcp{EMPTCP: e} }

type emptcp struct {
	EMPTCP
	choice energy.Choice
	// opened says that LTE was used.
	opened bool
	links  []sampled
}

// sampled is a link of which the rate is predicted.
type sampled struct {
	holtWinters
	// since is when it was last without work.
	since time.Duration
	// at is when the last sample was taken, and received what had come then.
	at       time.Duration
	received quantity.Bytes
}

func (*emptcp) Every() time.Duration { return looking }

func (e *emptcp) Use(s *Scene, use []bool) {
	if e.links == nil {
		e.links = make([]sampled, len(s.Progress))
	}
	for x := range e.links {
		e.sample(x, s)
	}
	wifi, lte := e.rate(energy.Wifi, s), e.rate(energy.LTE, s)
	next := e.Model.Thresholds(lte).Next(e.choice, wifi)
	if next == energy.LTEOnly {
		next = energy.Both // it gains little over both (eMPTCP 3.4)
	}
	if next == energy.Both && !e.opened && !e.mayOpen(s, wifi) {
		next = energy.WifiOnly
	}
	e.choice = next
	if next == energy.WifiOnly {
		useKind(energy.Wifi, s, use)
		return
	}
	e.opened = true
	useAll(use)
}

// sample adds a sample of a link that is at work for some round trips: what
// comes before is slow start, and would have a link left as soon as it is used.
func (e *emptcp) sample(x int, s *Scene) {
	l, p, rtt := &e.links[x], s.Progress[x], s.Links[x].period()
	idle := s.Links[x].Spared || p.Unfinished == 0
	if idle {
		l.since = s.Now
	}
	if idle || s.Now-l.since < samples*rtt {
		l.at, l.received = s.Now, p.Received
		return
	}
	passed, received := s.Now-l.at, p.Received-l.received
	if passed < rtt || received < leastSample && passed < samples*rtt {
		return
	}
	l.add(received.Per(passed))
	l.at, l.received = s.Now, p.Received
}

// period is how far samples are apart: the round trip of the handshake (eMPTCP
// 3.2), which for LTE has the radio's promotion in it.
func (l Link) period() time.Duration { return max(l.Handshake, l.RTT) }

// rate is the sum of what the links of a kind are predicted to deliver.
func (e *emptcp) rate(kind energy.Kind, s *Scene) (sum quantity.Rate) {
	for x, p := range s.Progress {
		switch {
		case p.Kind != kind:
		case e.links[x].known:
			sum += e.links[x].next()
		case kind == energy.LTE:
			sum += unknownRate
		}
	}
	return sum
}

// mayOpen reports whether LTE has waited long enough, and there is something
// to do for it (eMPTCP 3.5).
func (e *emptcp) mayOpen(s *Scene, wifi quantity.Rate) bool {
	for x, p := range s.Progress {
		if p.Kind != energy.Wifi {
			continue
		}
		rtt := s.Links[x].period()
		if idle := p.Silence > rtt || p.Unfinished == 0; idle || !e.links[x].known {
			return false
		}
		if p.Received >= delayBytes || p.Age >= max(delayTime, settled(wifi, rtt)) {
			return true
		}
	}
	return false
}

// settled is the time until there are enough samples of a link that begins in
// slow start (eMPTCP equation 1).
func settled(rate quantity.Rate, rtt time.Duration) time.Duration {
	trips := math.Log2((rate.Over(rtt)+firstWindow)/firstWindow) + samples
	return time.Duration(trips * float64(rtt))
}
