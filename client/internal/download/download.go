// Package download is the engine that all algorithms share: it connects the links, asks the scheduler for ranges,
// receives them concurrently, checks them and writes them to a sink.
package download

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// Options says what to download and how.
type Options struct {
	URL       *url.URL
	Links     []transfer.Link
	Scheduler schedule.Scheduler
	// Overlap is the part of a link's newest request that must have arrived
	// before the link's next request is issued: above 0 to 1. It is
	// 0.6 in thesis 4.2.2.
	Overlap float64
	// Window is the time over which throughput is averaged.
	Window time.Duration
	// Rescue lets other links take over from a link that fails or falls behind. Without it
	// the engine works as published (published.go).
	Rescue bool
	// GiveUp is how long no new byte may arrive on any link before the download fails; 0 waits for ever.
	GiveUp time.Duration
	// Balance, if set, counts what the caller has already received of the file.
	Balance *transfer.Balance
	// LowestRate is the least total rate of all links, averaged over GiveUp. A download below it fails; 0 is no limit.
	LowestRate quantity.Rate
	// Connections lets links have several connections, with Rescue; nil is one each.
	Connections *transfer.Connections
	// Output opens what the bytes are written to, before anything else.
	Output func() (Sink, error)
	// Verified says that Commit compares the whole file with a checksum. Then the server need not give a validator.
	Verified bool
	// Header is sent with every request. After a redirect to another origin (RFC 6454) the
	// client leaves out the fields of Private, Authorization, Cookie and Host.
	Header  http.Header
	Private []string
	// Redirects is how many redirects the client follows in a row: 0 for usualRedirects, NoRedirects for none.
	Redirects int
	// Resource is what the URL stands for, if the caller knows it. Else a link asks the server.
	Resource *transport.Resource
	// Part is the part of the resource to download; an empty one is all of it. Slice replaces
	// Part where the size of the resource is not known.
	Part  ranges.Range
	Slice *Slice
	// IsSlowToAnswer says that the caller knows the server to take long for each answer.
	IsSlowToAnswer bool
	// Pool, if set, has connections of earlier downloads, and keeps those of this one. With
	// Connections and no Pool, a download makes a pool of its own.
	Pool *Pool
	TLS  *tls.Config
	// Hellos may be shared with other transfers. nil remembers nothing from connection to connection.
	Hellos *transport.Hellos
	Log    *slog.Logger
	// Recorders receive every event, one event at a time. The engine samples the links only if there is a recorder.
	Recorders []transfer.Recorder
}

// writeSize is how many bytes of a body the engine collects for one write to the sink.
const writeSize = 64 << 10

// download is the engine with rescue, and the state that its parts share. Each part is a type of its own.
type download struct {
	task
	// now is the time of the present event. actions is what its step wants done, and pending are the events that
	// these actions bring at once.
	now     time.Duration
	actions []action
	pending []event
	// events come from other goroutines. isClosing says that no more of these begin.
	events    chan message
	isClosing bool
	// sampledAt is when the links were sampled last.
	sampledAt time.Duration
	// plan chooses the links that are used, if it is set.
	plan *planned

	// waits is for how many seconds the reader has enough bytes, as far as the plan knows.
	waits float64
	links []*linkState
	// connections are those of all links, in the order in which they were added.
	connections []*connection
	// repeats says that the server answered a second request: the URL works more than once.
	repeats bool
	// isSerial says that the server seems to serve one request after the other.
	isSerial bool
	// unranged counts the answers without a range since new bytes arrived.
	unranged int
	// race is set if the server sends the resource only as a whole.
	race *race
	// fetches are the requests for ranges that are being written.
	fetches sync.WaitGroup
	// origin is the server and URL of the first answer.
	origin origin
	// openings are the requests for the first bytes that learn it. opened is how many there were.
	openings []*opening
	opened   int
	// noRange says that the server answered an opening with other bytes. The engine sends no
	// more openings then: each might bring the whole file.
	noRange bool
	// wholeOpening is the opening that the server answers with the whole file, if there is one.
	wholeOpening *opening
	// doubtedAt is when the client first did not believe an answer.
	doubtedAt time.Duration
	// sessions are the open ones.
	sessions []*session
	// warning says why a complete download may be wrong.
	warning string
	// known, victims, worksMemory and mergeMemory are memory that decisions use again, so that they allocate nothing.
	known                    []schedule.Link
	victims                  transfer.Victims[victim]
	worksMemory, mergeMemory []schedule.Work
}

func newDownload(o Options) *download {
	d := new(download)
	d.task.begin(o)
	d.events = make(chan message)
	d.do = func(a action) { d.actions = append(d.actions, a) }
	return d
}

func withLinks(o Options) *download {
	d := newDownload(o)
	for i, of := range o.Links {
		l := newLink(newCommonLink(i, of.Within(o.sessions()), o.Window), o.URL)
		l.first().index, l.isSlowToAnswer = i, o.IsSlowToAnswer
		d.links, d.connections = append(d.links, l), append(d.connections, l.first())
	}
	if planner, ok := o.Scheduler.(schedule.Planner); ok && o.Connections == nil {
		d.plan = newPlanned(d, planner.Plan())
	}
	return d
}

func (d *download) summarize(s *rundir.Summary) {
	s.Warning = d.warning
	if d.race != nil {
		s.Resumed = 0
	}
	for _, l := range d.links {
		s.Links[l.Name] = l.summary(l.Meter.Total()-l.raced, l.roundTrip())
	}
}

func (d *download) target(c *connection) transport.Target {
	return d.task.target(transport.Target{URL: c.url})
}

// mostPause is how long an only answer may pause: longestPause, or half of GiveUp, so that
// other requests have the other half.
func (d *download) mostPause() time.Duration {
	if d.GiveUp > 0 {
		return min(longestPause, d.GiveUp/2)
	}
	return longestPause
}

func (d *download) assign() {
	if d.payload == nil || d.isOver {
		return
	}
	now := d.now
	for _, c := range d.connections {
		isFree := c.newest == nil || c.newest.isHeld || c.isUnanswered(now)
		if c.session != nil && isFree && !d.isOpening(c) {
			d.request(c)
		}
	}
}

func (d *download) sample(now time.Duration) {
	for _, l := range d.links {
		var connected *connection
		inFlight := 0
		for _, one := range l.connections {
			if one.session != nil {
				connected = cmp.Or(connected, one)
				inFlight += len(one.active)
			}
		}
		if connected != nil {
			d.recordSample(&l.commonLink, &connected.commonConnection, inFlight, now)
		}
	}
}

// Slice is a part of a resource whose size is not known yet, from First to Last. A negative Last
// stands for the end. A negative First counts from the end.
type Slice struct{ First, Last quantity.Bytes }

// of returns the slice's range of a resource of that size; -1 is an unknown size.
func (s Slice) of(size quantity.Bytes) (ranges.Range, error) {
	first, last := s.First, s.Last
	switch {
	case size < 0:
		return ranges.Range{}, errors.New("the server does not tell the size of the file, without which a part of it is not known")
	case first < 0:
		first, last = max(0, size+first), size-1
	case last < 0 || last >= size:
		last = size - 1
	}
	if first > last {
		return ranges.Range{}, fmt.Errorf("the range begins behind the end of the file, which has %d bytes", int64(size))
	}
	return ranges.Range{Offset: first, Length: last - first + 1}, nil
}
