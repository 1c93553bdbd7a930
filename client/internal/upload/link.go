package upload

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transport"
)

// linkState is a link in an upload.
type linkState struct {
	download.Link
	upload *upload
	index  int
	meter  *throughput.Meter
	client *http.Client
	// socket is the link's connection, nil before there is one.
	socket link.Socket

	active   []*request
	newest   *request
	requests int
	bytes    quantity.Bytes
	wasted   quantity.Bytes
	last     time.Duration

	// acknowledged is how much the server's kernel has got, of which the link
	// learnt at heard.
	acknowledged uint64
	heard        time.Duration
	// failures counts those since a range was confirmed, of which problem is the
	// last; the link is left alone until waits.
	failures int
	problem  error
	waits    time.Duration
}

// unsent is how much the kernel takes beyond what it can send, in bytes: with
// more, what a connection has taken says nothing of what the link has sent.
const unsent = 64 << 10

// connect makes the link's client anew: its next request dials.
func (l *linkState) connect() {
	if l.client != nil {
		l.client.CloseIdleConnections()
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	l.socket, l.acknowledged = nil, 0
	l.client = &http.Client{
		// A redirect of a PUT is for the user to follow.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Protocols:       &protocols,
			TLSClientConfig: l.upload.TLS.Clone(), // net/http writes into it.
			MaxConnsPerHost: mostRequests,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				socket, err := l.Dial(ctx, transport.Address(l.upload.URL))
				if err != nil {
					return nil, err
				}
				if limited, ok := socket.(interface{ LimitUnsent(int) error }); ok {
					if err := limited.LimitUnsent(unsent); err != nil {
						socket.Close()
						return nil, err
					}
				}
				l.upload.mu.Lock()
				defer l.upload.mu.Unlock()
				l.socket, l.acknowledged, l.heard = socket, 0, l.upload.now()
				return socket, nil
			},
		},
	}
}

// wants reports whether the link may have another request: it has none, or
// enough of its newest is on the way.
func (l *linkState) wants() bool {
	switch {
	case l.upload.now() < l.waits || len(l.active) >= mostRequests:
		return false
	case len(l.active) == 0:
		return !l.upload.whole || l.upload.free.Bytes() > 0
	}
	done := float64(l.newest.taken) >= l.upload.Overlap*float64(l.newest.Length)
	return done && !l.upload.whole && (!l.upload.Rescue || l.upload.free.Bytes() > 0)
}

// look takes note of what the server's kernel has got, and gives up requests
// on a link that gets nothing there.
func (l *linkState) look() {
	if len(l.active) == 0 {
		return
	}
	now := l.upload.now()
	if l.socket == nil {
		if l.upload.Rescue && now-l.active[0].issued > connectPatience {
			l.cancel(errSilent)
		}
		return
	}
	told, ok := l.socket.(interface {
		Acknowledged() (uint64, bool, error)
	})
	if !ok {
		l.upload.moved = now // Nobody can tell.
		return
	}
	for _, one := range l.active {
		l.heard = max(l.heard, one.moved) // Over HTTP/1.1 on another connection.
	}
	acknowledged, all, err := told.Acknowledged()
	if err != nil || acknowledged > l.acknowledged || all && l.newest.taken == l.newest.Length {
		if acknowledged > l.acknowledged {
			l.upload.moved = now
		}
		l.acknowledged, l.heard = acknowledged, now
		return
	}
	rtt, _ := l.socket.RoundTrip()
	if l.upload.Rescue && now-l.heard > max(patience, 4*rtt.Last) {
		l.cancel(errSilent)
	}
}

func (l *linkState) cancel(err error) {
	for _, one := range l.active {
		one.cancel(err)
	}
}

// connectPatience is how long a link may take to connect.
const connectPatience = 5 * time.Second

var errSilent = errors.New("the link gets nothing to the server")

// pause leaves the link alone for a while, after which it connects anew.
func (l *linkState) pause(err error) {
	l.problem = err
	now := l.upload.now()
	if now < l.waits {
		return // Another of its requests has said so.
	}
	pause := min(firstPause<<min(l.failures, 10), longestPause)
	l.failures++
	l.waits = now + pause
	l.upload.record(&rundir.Ban{Link: l.Name, Error: printable.Message(err.Error()), Retry: pause.Nanoseconds()})
	l.connect()
}

func (l *linkState) rate() quantity.Rate { return l.meter.Rate(l.upload.now()) }

// left is how long a request of the link will still take: nobody knows of one
// that has taken nothing for long, and has no answer.
func (l *linkState) left(one *request) time.Duration {
	if l.upload.now()-one.moved > max(patience, 4*l.roundTrip().Last) {
		return math.MaxInt64
	}
	// What it has taken may still be on the way: a part counts until confirmed.
	return l.time(max(one.Length-one.taken, one.Length/4))
}

// time is how long the link takes for so many bytes.
func (l *linkState) time(bytes quantity.Bytes) time.Duration {
	rate := l.rate()
	if rate <= 0 {
		rate = l.meter.Peak()
	}
	if rate <= 0 {
		return math.MaxInt64
	}
	return time.Duration(float64(bytes) / rate.BytesPerSecond() * float64(time.Second))
}

func (l *linkState) roundTrip() (rtt link.RoundTrip) {
	if l.socket != nil {
		rtt, _ = l.socket.RoundTrip()
	}
	return rtt
}

// known is what the scheduler is told.
func (l *linkState) known() schedule.Link {
	bandwidth := l.Bandwidth
	if bandwidth == 0 {
		bandwidth = l.meter.Peak()
	}
	return schedule.Link{
		Requests: l.requests, Throughput: l.rate(), Pace: l.rate(), Bandwidth: bandwidth,
		Arrived: l.bytes, RTT: l.roundTrip().Min, Variation: l.meter.Variation(),
	}
}

func (l *linkState) summary() rundir.LinkSummary {
	rtt := l.roundTrip()
	return rundir.LinkSummary{
		Device: l.Device, Bytes: l.bytes, Finish: l.last.Nanoseconds(), Requests: l.requests,
		MinRTT: rtt.Min.Nanoseconds(), LastRTT: rtt.Last.Nanoseconds(),
		Peak: l.meter.Peak(), Wasted: l.wasted,
	}
}
