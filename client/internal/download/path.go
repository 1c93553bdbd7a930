package download

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// pathState is what the client has measured on the way to the server.
type pathState struct {
	rtt link.RoundTrip
	// handshake is how long the last TCP handshake took.
	handshake time.Duration
	pace      *throughput.Pace
	// delays are the times from the last requests to their first bytes.
	delays []time.Duration
}

// delaySamples is the number of requests by which a path knows how soon the server answers.
const delaySamples = 4

// measure updates the round trip time, if there is a session. If the socket cannot tell it, as after a reset, the last
// one stays.
func (p *pathState) measure(on *session) {
	if on == nil {
		return
	}
	if rtt, err := on.Socket.RoundTrip(); err == nil {
		p.rtt = rtt
	}
}

// answered notes the time from a request to its first byte.
func (p *pathState) answered(after time.Duration) {
	p.delays = append(p.delays[max(0, len(p.delays)-delaySamples+1):], after)
}

// delay is the time from a request to its first byte: a round trip and the server's time.
func (p *pathState) delay() time.Duration {
	if len(p.delays) == 0 {
		return p.rtt.Min
	}
	return max(p.rtt.Min, slices.Min(p.delays))
}

// tells is what a scheduler is told of the path, on a link with that account, bandwidth and present session.
func (p *pathState) tells(account *transfer.Account, bandwidth quantity.Rate, spared bool, on *session, now time.Duration) schedule.Link {
	requests := 0
	if on != nil {
		requests = on.requests // A link that is connected again begins as at first.
	}
	return schedule.Link{
		Spared:     spared,
		Requests:   requests,
		Throughput: account.Meter.Rate(now),
		Pace:       p.pace.Rate(now),
		Arrived:    p.pace.Total(),
		Bandwidth:  account.Peak(bandwidth),
		RTT:        p.rtt.Min,
		Handshake:  p.handshake,
		Variation:  account.Meter.Variation(),
	}
}
