package download

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
)

// Who may try again is told when that may help.
func TestOutages(t *testing.T) {
	cut := func(n *network) { n.wifi.set(0); n.lte.set(0); n.wifi.reset(); n.lte.reset() }
	busy := func(after string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", after)
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		change  func(*Options, *network)
		outage  bool
		after   time.Duration
	}{
		"no link":         {content, func(_ *Options, n *network) { cut(n) }, true, 0},
		"nothing arrives": {content, func(_ *Options, n *network) { time.AfterFunc(200*time.Millisecond, func() { cut(n) }) }, true, 0},
		"busy":            {busy("0"), nil, true, 0},
		"busy for long":   {busy("3600"), nil, true, time.Hour},
		"no link but one that has reached its cap": {content, func(o *Options, n *network) {
			cut(n)
			o.Links[0].Dial = func(context.Context, string) (link.Socket, error) { return nil, capError{} }
		}, true, 0},
		"all caps are reached": {content, func(o *Options, _ *network) {
			for i := range o.Links {
				o.Links[i].Dial = func(context.Context, string) (link.Socket, error) { return nil, capError{} }
			}
		}, false, 0},
		"not found":             {http.NotFound, nil, false, 0},
		"not found by one link": {http.NotFound, func(_ *Options, n *network) { n.lte.set(0) }, false, 0},
		"another size":          {shrinking(), nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := try(t, test.handler, func(o *Options, n *simNet) {
				net := &network{simNet: n, wifi: newCable(), lte: newCable()}
				a, b := wifi, lte
				a.cable, b.cable = net.wifi, net.lte
				o.Links[0].Dial, o.Links[1].Dial = n.dial(a), n.dial(b)
				o.Rescue, o.GiveUp = true, 5*time.Minute
				if test.change != nil {
					test.change(o, net)
				}
			})
			outage := new(Outage)
			if got := errors.As(err, &outage); err == nil || got != test.outage || outage.RetryAfter != test.after {
				t.Errorf("the error is %v, an outage: %v, to be tried again after %v", err, got, outage.RetryAfter)
			}
		})
	}
}
