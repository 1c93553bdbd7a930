package upload

import (
	"slices"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/throughput"
	"github.com/linklab/linklab/client/internal/transfer"
)

// linkState is a link in an upload.
type linkState struct {
	transfer.Link
	upload *upload
	index  int
	// connections are the link's connections, one at least.
	connections []*connection
	transfer.Account
	transfer.Growing
	// bytes is how many bytes the server has confirmed.
	bytes quantity.Bytes
	// rtt and leastRTT are round trip times, with the queue and without.
	rtt, leastRTT time.Duration

	// failures counts the failures since the server confirmed a range, and problem is the last
	// one. The link backs off until waits.
	failures int
	problem  error
	// refusal is the server's refusal over this link since it confirmed a range, if any.
	refusal error
	waits   time.Duration
	// away says that nothing gets through any more.
	away bool
}

func (u *upload) newLink(index int, of transfer.Link) *linkState {
	most := 1
	if u.Connections != nil {
		most = u.Connections.Most
	}
	return &linkState{
		Link: of.Within(2 * most), upload: u, index: index, // Each silent connection gets another one.
		Account: transfer.NewAccount(u.Window), Growing: transfer.Growing{Together: throughput.NewPace(schedule.PaceWindow)},
	}
}

// start gives the link the connections that it begins with.
func (l *linkState) start() {
	l.connections, l.Growth = nil, nil
	count := 1
	if l.upload.Connections != nil && !l.upload.whole {
		l.Growth = &schedule.Growth{Most: l.upload.Connections.Most}
		count = l.Growth.Begin()
	}
	for range count {
		l.add()
	}
}

// add gives the link another connection.
func (l *linkState) add() {
	one := &connection{link: l, pace: throughput.NewPace(schedule.PaceWindow)}
	l.connections = append(l.connections, one)
	one.connect()
}

// remove takes a connection off the link. Its unfinished ranges are free again.
func (l *linkState) remove(one *connection) {
	one.gone = true
	if one.connecting {
		one.abandon()
	}
	one.close(transfer.ErrGone)
	l.connections = slices.DeleteFunc(l.connections, func(other *connection) bool { return other == one })
}

// tend looks after the link's connections.
func (l *linkState) tend(now time.Duration) {
	u := l.upload
	l.connections[0].leaving = false // The first connection may have changed after a failure.
	flow := schedule.Flow{Total: l.Together.Total(), Busy: u.free.Bytes() > 0}
	var hears, silent bool
	for i, one := range slices.Clone(l.connections) {
		one.look(now)
		if one.leaving && len(one.active) == 0 {
			l.remove(one)
			continue
		}
		if one.conn != nil && !one.silent && one.pace.Total() > 0 {
			one.pace.Average(transfer.Averaged(one.rtt))
			flow.Add(one.rtt, one.leastRTT, one.pace.Rate(now), i == 0)
		}
		hears = hears || one.conn != nil && !one.silent
		silent = silent || one.silent
		if !one.connecting && now >= l.waits && one.isMissing() {
			one.connect()
		}
	}
	l.Together.Average(transfer.Averaged(l.rtt))
	if !hears {
		l.away = l.away || silent
		for _, one := range l.connections {
			one.leave(now)
		}
		return
	}
	if !l.HasSeveral() {
		return
	}
	if l.away {
		l.away = false
		l.Growth.Back(0, true)
	}
	count := l.Growth.Count(now, flow)
	for len(l.connections) < count {
		l.add()
	}
	for _, one := range l.surplus(count, now) {
		one.leaving = true
	}
}

// surplus returns the connections beyond the count.
func (l *linkState) surplus(count int, now time.Duration) []*connection {
	return transfer.Surplus(l.connections, count,
		func(c *connection) bool { return c.leaving },
		func(c *connection) *throughput.Pace { return c.pace }, now)
}

// work is the link's outstanding work.
func (l *linkState) work(now time.Duration) (work schedule.Work) {
	for _, one := range l.connections {
		work.Join(one.work(now))
	}
	if len(l.connections) > 1 {
		work.Rate = l.Together.Rate(now)
	}
	return work
}

// pause makes the link back off.
func (l *linkState) pause(err error) {
	if link.Wait(err) == 0 || l.problem == nil {
		l.problem = err // Else problem names the cause better.
	}
	now := l.upload.now()
	if now < l.waits {
		return // Another request has reported this failure.
	}
	pause := link.Wait(err) // To dial too early is no failure of the link.
	if pause == 0 {
		l.failures++
		pause = transfer.Backoff(l.failures)
	}
	l.waits = now + pause
	l.upload.record(&rundir.Ban{Link: l.Name, Error: printable.Message(err.Error()), Retry: pause.Nanoseconds()})
}

// changed reacts to a change of the link's device.
func (l *linkState) changed(c link.Change) {
	if c == link.Down {
		return // The carrier may be back before the link is needed.
	}
	l.waits, l.failures = 0, 0
	for _, one := range l.connections {
		if one.connecting {
			one.abandon()
		}
	}
}

// known is what the scheduler is told.
func (l *linkState) known(now time.Duration) schedule.Link {
	rate := l.Meter.Rate(now)
	return schedule.Link{
		Requests: l.Requests, Throughput: rate, Pace: rate, Bandwidth: l.Peak(l.Bandwidth),
		Arrived: l.bytes, RTT: l.leastRTT, Variation: l.Meter.Variation(),
	}
}

func (l *linkState) summary() rundir.LinkSummary {
	return l.Summary(l.Device, l.bytes, l.leastRTT, l.rtt)
}
