// Package quota limits the rate of links, and their volume of data.
package quota

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
)

// NewRate returns a limit that links may share.
func NewRate(limit quantity.Rate) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(limit.BytesPerSecond()), max(int(limit.Over(burst)), minBurst))
}

// A limited link may exceed its rate by the bytes of burst, and by minBurst bytes. That is more
// than TLS needs to make progress.
const (
	burst    = 100 * time.Millisecond
	minBurst = 4 << 10
)

// Link is the quota of one link for all of its connections.
type Link struct {
	// Name is the name of the link.
	Name string
	// Rates are the limits of the link. Other links may share them.
	Rates []*rate.Limiter
	// Cap limits the bytes, 0 for no limit.
	Cap quantity.Bytes

	// used counts the bytes of both directions, with TLS and without TCP and IP headers.
	used atomic.Int64
}

func (l *Link) add(bytes int) { l.used.Add(int64(bytes)) }

// Err returns a *CapError when the cap is reached.
func (l *Link) Err() error {
	if l.Cap == 0 || quantity.Bytes(l.used.Load()) < l.Cap {
		return nil
	}
	return &CapError{Link: l.Name, Cap: l.Cap}
}

// CapError means that a link has reached its cap.
type CapError struct {
	Link string
	Cap  quantity.Bytes
}

func (e *CapError) Error() string { return fmt.Sprintf("the data cap of %d bytes is reached", e.Cap) }

// Permanent tells the engine that a retry soon will fail, too.
func (*CapError) Permanent() bool { return true }

// Dial connects to a TCP address.
type Dial func(ctx context.Context, address string) (link.Socket, error)

// Dialer applies the quota to dial's connections. They fail with a *CapError when the cap is
// reached. Bytes that the kernel has received by then and nobody has read are not counted.
func (l *Link) Dialer(dial Dial) Dial {
	return func(ctx context.Context, address string) (link.Socket, error) {
		if err := l.Err(); err != nil {
			return nil, err
		}
		socket, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return &conn{socket, l, newPace(l)}, nil
	}
}

// pace delays what one socket receives to the rates of its link.
type pace struct {
	link  *Link
	open  context.Context
	close context.CancelFunc
}

func newPace(l *Link) pace {
	open, closed := context.WithCancel(context.Background())
	return pace{l, open, closed}
}

// wait returns when all rates allow n bytes, or when the socket is closed.
func (p pace) wait(n int) error {
	var delay time.Duration
	for _, r := range p.link.Rates {
		for left := n; left > 0; left -= r.Burst() { // No reservation may exceed a burst.
			delay = max(delay, r.ReserveN(time.Now(), min(left, r.Burst())).Delay())
		}
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.open.Done():
		return net.ErrClosed
	}
}

// conn is a connection within the quota of its link.
type conn struct {
	link.Socket
	link *Link
	pace pace
}

// Read delays bytes to the allowed rate: unread bytes close TCP's receive window, which slows the
// sender.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.link.Err(); err != nil {
		return 0, err
	}
	for _, r := range c.link.Rates {
		p = p[:min(len(p), r.Burst())]
	}
	n, err := c.Socket.Read(p)
	c.link.add(n)
	if waitErr := c.pace.wait(n); err == nil {
		err = waitErr
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.link.Err(); err != nil {
		return 0, err
	}
	n, err := c.Socket.Write(p)
	c.link.add(n)
	return n, err
}

func (c *conn) Close() error {
	c.pace.close()
	return c.Socket.Close()
}

// CloseWrite ends the sending, if the socket supports that.
func (c *conn) CloseWrite() error {
	if half, ok := c.Socket.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// LimitUnsent, FillSegments and DiscardUnsent are passed on to a Sender.
func (c *conn) LimitUnsent(bytes int) error {
	if s, ok := c.Socket.(link.Sender); ok {
		return s.LimitUnsent(bytes)
	}
	return nil
}

func (c *conn) FillSegments(always bool) error {
	if s, ok := c.Socket.(link.Sender); ok {
		return s.FillSegments(always)
	}
	return nil
}

func (c *conn) DiscardUnsent() error {
	if s, ok := c.Socket.(link.Sender); ok {
		return s.DiscardUnsent()
	}
	return nil
}

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.Socket }
