package upload

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// refusal is an answer without success.
type refusal struct {
	code   int
	status string
}

func (r *refusal) Error() string { return "the server answers " + r.said() }

func (r *refusal) said() string { return printable.Quote(r.status) }

// ofRange reports whether the server may refuse the Content-Range. RFC 9110 14.5 asks for 400; some
// servers answer 411, 415 or 501.
func (r *refusal) ofRange() bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusLengthRequired, http.StatusUnsupportedMediaType, http.StatusNotImplemented,
	}, r.code)
}

// passes reports whether the same request may succeed later.
func (r *refusal) passes() bool {
	return slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, r.code)
}

// passesWhole is passes for a file in one piece: the server may still lock it for a link that broke.
func (r *refusal) passesWhole() bool { return r.passes() || r.code == http.StatusLocked }

// failed decides what follows from the failure of a request.
func (u *upload) failed(c *connection, err error) {
	refused := new(refusal)
	isRefusal := errors.As(err, &refused)
	redirect := new(transport.RedirectError)
	switch {
	case errors.Is(err, errExpectation):
		// The request is repeated without it at once.
	case errors.As(err, &redirect):
		u.end(redirect)
	case isRefusal && refused.ofRange() && !u.whole && u.missing.Bytes() == u.Size:
		u.end(errWhole)
	case isRefusal && !refused.passes() && !(u.whole && refused.passesWhole()):
		u.end(refused)
	case u.Rescue && isRefusal && u.refuses():
		u.end(fmt.Errorf("the server has taken nothing for %s: it answers %s", u.GiveUp, refused.said()))
	case u.Rescue && isRefusal:
		c.link.pause(err) // Its connections work, and the server may take their other ranges.
	default:
		u.broken(c, err)
	}
}

// broken reacts to a connection that failed or could not be made. The link's other connections go on;
// without any the link backs off.
func (u *upload) broken(c *connection, err error) {
	l := c.link
	switch {
	case c.gone:
	case !u.Rescue:
		u.end(fmt.Errorf("%s: %w", l.Name, err))
	case len(l.connections) > 1:
		if !link.IsCrowded(err) {
			l.Growth.Lost()
		}
		l.remove(c)
	default:
		c.close(err)
		l.pause(err)
	}
	if transfer.IsRefusal(err) {
		l.refusal = err
	}
	if u.isHopeless() {
		for _, other := range u.links {
			other.problem = other.refusal
		}
		u.end(errors.New(strings.TrimPrefix(u.problems(), ": ")))
	}
}

// isHopeless reports whether the server has confirmed nothing, and refuses the
// connections of every link.
func (u *upload) isHopeless() bool {
	return u.missing.Bytes() == u.Size && !slices.ContainsFunc(u.links, func(l *linkState) bool {
		return l.refusal == nil
	})
}

// refuses notes a refusal. It reports whether there were only refusals for so long that it is useless to
// send the ranges again.
func (u *upload) refuses() bool {
	if u.refused == 0 {
		u.refused = u.now()
	}
	return u.GiveUp > 0 && u.now()-u.refused > u.GiveUp
}
