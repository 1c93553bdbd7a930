package download

import (
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transport"
)

// wire counts what the network brought for a link, TLS included. The kernel knows it: bodies arrive
// a record of TLS at a time, which is seldom on a slow link, and not at all behind a lost packet.
type wire struct {
	of       *transport.Conn
	seen     quantity.Bytes // of that connection
	received quantity.Bytes
	heard    time.Duration
}

// look updates the count by the link's connection.
func (w *wire) look(conn *transport.Conn, now time.Duration) {
	if w.of != conn {
		w.of, w.seen = conn, 0
	}
	got := conn.Received()
	if known, err := conn.Socket.RoundTrip(); err == nil {
		got = max(got, quantity.Bytes(known.Segments)*schedule.SegmentSize)
	}
	if got > w.seen {
		w.received += got - w.seen
		w.seen, w.heard = got, now
	}
}
