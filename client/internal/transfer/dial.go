package transfer

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/transport"
)

const (
	// AttemptTrips is how many round trips an attempt to connect may take.
	AttemptTrips = 8
	// A silent link is dialled again after one part of askedAgain of its silence.
	askedAgain = 32
)

// errOverdue ends an attempt beside which others go on.
var errOverdue = errors.New("others were made meanwhile")

// Dial connects, and dials again for as long as there is no answer: after the time
// between, later after a part of all that has passed. It returns the first connection. So
// a link that is back is noticed soon: TCP itself would ask again after a second, then
// after two. No attempt is left under way for longer than a link that is back may take
// to answer. If between is 0, it dials once.
func Dial(ctx context.Context, dial func(context.Context) (link.Socket, error), between time.Duration) (link.Socket, error) {
	if between == 0 {
		return dial(ctx)
	}
	type answer struct {
		socket link.Socket
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer)
	start, dialing := time.Now(), 0
	defer func() {
		cancel()
		for range dialing {
			if late := <-answers; late.err == nil {
				late.socket.Close()
			}
		}
	}()
	for {
		passed := time.Since(start)
		dialing++
		go func() {
			// No deadline, which a dialer takes for its own, and reports as such.
			call, end := context.WithCancelCause(ctx)
			patience := time.AfterFunc(max(AttemptTrips*between, passed/2), func() { end(errOverdue) })
			socket, err := dial(call)
			patience.Stop()
			if err != nil {
				err = cmp.Or(context.Cause(call), err)
			}
			end(nil)
			answers <- answer{socket, err}
		}()
		timer := time.NewTimer(max(between, passed/askedAgain))
	wait:
		for {
			select {
			case first := <-answers:
				dialing--
				if first.err == errOverdue {
					continue
				}
				timer.Stop()
				return first.socket, first.err
			case <-timer.C:
				break wait
			}
		}
	}
}

// permanent is an error after which trying again is of no use.
type permanent interface {
	error
	Permanent() bool
}

// IsPermanent reports whether trying again is of no use.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p) && p.Permanent()
}

// IsRefusal reports whether an error to connect will most likely come again:
// the server is not there, it is the wrong one, or no TLS suits both sides.
func IsRefusal(err error) bool {
	dns, handshake := new(net.DNSError), new(transport.HandshakeError)
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &handshake) && handshake.IsFinal() || IsPermanent(err)
}
