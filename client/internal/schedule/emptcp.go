package schedule

import (
	"math"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// EMPTCP is eMPTCP above HTTP (eMPTCP 3). It begins with Wi-Fi alone and adds LTE when that
// is worth waking the radio. Then it uses the links that need the least energy per byte by
// the Energy Information Base. The links in use get requests of Alg1, so small that a link
// can be left soon.
type EMPTCP struct {
	// Sizes decides the sizes of requests.
	Sizes Alg1
	// Model is the energy model of the radios.
	Model *energy.Model
}

const (
	// delayBytes is κ and delayTime is τ: LTE is not used before Wi-Fi has delivered κ
	// bytes, or τ has passed (eMPTCP 4.1).
	delayBytes quantity.Bytes = 1_000_000
	delayTime                 = 3 * time.Second
	// samples is φ: τ must leave time for so many samples of Wi-Fi, one each round trip.
	// firstWindow is what TCP sends in the first round trip, in bytes.
	samples     = 10
	firstWindow = initialWindow
	// unknownRate is the assumed rate of a link that was never used (eMPTCP 3.2).
	unknownRate quantity.Rate = 5e6
	// emptcpPeriod is the check interval.
	emptcpPeriod = 50 * time.Millisecond
	// leastSample is the smallest sample, ten packets. A smaller sample is less exact
	// than the hysteresis, so sampling goes on for up to φ round trips.
	leastSample quantity.Bytes = 10 * SegmentSize
)

// Next returns the size of Alg1 among the links in use.
func (e EMPTCP) Next(x int, known Known) quantity.Bytes {
	at, used := known.usedOnly(x)
	return e.Sizes.Next(at, used)
}

func (e EMPTCP) Plan() Plan { return &emptcp{EMPTCP: e} }

type emptcp struct {
	EMPTCP
	choice energy.Choice
	// opened is true if LTE was used.
	opened bool
	links  []sampled
}

// sampled holds the predicted rate of a link, and its last sample.
type sampled struct {
	holtWinters
	// since is the last time at which the link had no work.
	since time.Duration
	// at is the time of the last sample. received counts the bytes up to then.
	at       time.Duration
	received quantity.Bytes
}

// Opens implements Opener. eMPTCP, below HTTP, asks nothing before it requests the file.
func (*emptcp) Opens() {}

func (*emptcp) Every() time.Duration { return emptcpPeriod }

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
		next = energy.Both // LTE alone saves little compared to both (eMPTCP 3.4).
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

// sample adds a sample of a link that has been busy for some round trips. Earlier samples
// would measure slow start, and the link would be left as soon as it is used.
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

// period returns the time between two samples: the round trip of the handshake (eMPTCP
// 3.2). For LTE that includes the promotion of the radio.
func (l Link) period() time.Duration { return max(l.Handshake, l.RTT) }

// rate returns the sum of the predicted rates of the links of a kind.
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

// mayOpen reports whether LTE has waited long enough, and Wi-Fi is busy (eMPTCP 3.5).
func (e *emptcp) mayOpen(s *Scene, wifi quantity.Rate) bool {
	for x, p := range s.Progress {
		if p.Kind != energy.Wifi {
			continue
		}
		rtt := s.Links[x].period()
		if idle := p.Silence > rtt || p.Unfinished == 0; idle || !e.links[x].known {
			return false
		}
		if p.Received >= delayBytes || p.Age >= max(delayTime, sampleTime(wifi, rtt)) {
			return true
		}
	}
	return false
}

// sampleTime returns the time until a link that begins in slow start has enough samples
// (eMPTCP equation 1).
func sampleTime(rate quantity.Rate, rtt time.Duration) time.Duration {
	trips := math.Log2((rate.Over(rtt)+firstWindow)/firstWindow) + samples
	return time.Duration(trips * float64(rtt))
}
