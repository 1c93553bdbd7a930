package download

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
)

// Only a connection of several whose link is silent asks again that soon.
func TestWhoAsksAgainSoon(t *testing.T) {
	for _, test := range []struct {
		several, suspect bool
		rtt              time.Duration
		want             time.Duration
	}{
		{false, true, 0, 0},
		{true, false, 0, 0},
		{true, true, 0, transfer.LeastBackoff},
		{true, true, 20 * time.Millisecond, transfer.CheckInterval},
		{true, true, time.Second, 500 * time.Millisecond},
	} {
		c := newLink(0, transfer.Link{}, time.Second).first()
		c.rtt.Last, c.suspect = test.rtt, test.suspect
		if test.several {
			c.link.Growth = &schedule.Growth{}
		}
		if got := c.betweenAttempts(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
