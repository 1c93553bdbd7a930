// Package transfer holds what a download and an upload share: what a link is, how its
// connections are made, watched, backed off and counted, how fast a link is taken to be, and
// which requests a connection takes over or duplicates that has nothing left to do.
package transfer

import (
	"context"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/throughput"
)

// Link is a way to the server.
type Link struct {
	Name, Device string
	// Bandwidth is B_x; if 0, it is the highest throughput seen.
	Bandwidth quantity.Rate
	// Dial connects to a TCP address through the link.
	Dial func(ctx context.Context, address string) (link.Socket, error)
	// Packets, if set, opens a socket for UDP datagrams over the link.
	Packets func(ctx context.Context) (link.PacketSocket, error)
	// Service, if set, tells where a server offers a protocol by its HTTPS record (see link.Dialer).
	Service func(ctx context.Context, host string, port uint16, protocol string) (at string)
	// Watch, if set, reports changes of the link until ctx ends.
	Watch func(ctx context.Context, report func(link.Change))
}

// Within returns the link with room for so many connections at a time, those included that are
// tried beside another one (see link.Room).
func (l Link) Within(most int) Link {
	room, dial := link.NewRoom(most), l.Dial
	l.Dial = func(ctx context.Context, address string) (link.Socket, error) {
		return dial(link.WithRoom(ctx, room), address)
	}
	return l
}

// Connections lets links have several connections.
type Connections struct {
	// Most is how many a link may have, over HTTP/1.1 three times as many: a connection
	// there cannot be asked for the next bytes before it has brought the last.
	Most int
}

// A Recorder takes the events of a transfer; t is the time since its start.
type Recorder interface {
	Record(t time.Duration, e rundir.Event)
}

// Account counts what all connections of a link transfer.
type Account struct {
	Meter    *throughput.Meter
	Requests int
	Wasted   quantity.Bytes
	// Last is when the last byte arrived.
	Last time.Duration
}

// NewAccount returns an empty account whose throughput is averaged over the window.
func NewAccount(window time.Duration) Account {
	return Account{Meter: throughput.NewMeter(window)}
}

// Peak returns the link's bandwidth if it is known, else the highest throughput seen.
func (a *Account) Peak(bandwidth quantity.Rate) quantity.Rate {
	if bandwidth > 0 {
		return bandwidth
	}
	return a.Meter.Peak()
}

// Summary returns what the run directory says of the link, of which so many bytes count.
func (a *Account) Summary(device string, bytes quantity.Bytes, leastRTT, lastRTT time.Duration) rundir.LinkSummary {
	return rundir.LinkSummary{
		Device:   device,
		Bytes:    bytes,
		Finish:   a.Last.Nanoseconds(),
		Requests: a.Requests,
		MinRTT:   leastRTT.Nanoseconds(),
		LastRTT:  lastRTT.Nanoseconds(),
		Peak:     a.Meter.Peak(),
		Wasted:   a.Wasted,
	}
}
