package download

import (
	"testing"
	"testing/synctest"
	"time"
)

// A frozen connection of the simulation lets nothing pass, also if its link is cut at the same time.
func TestNothingPassesOnAFrozenConnection(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := newCable()
			d := newDirection(80e6, 5*time.Millisecond, c)
			defer time.Sleep(time.Second) // What is under way ends.
			defer d.abort()
			defer d.finish()
			close(d.frozen)
			c.set(0)
			for range 5 {
				d.queue <- make([]byte, segment)
			}
			select {
			case <-d.arrived:
				t.Error("a segment has passed")
			case <-time.After(time.Second):
			}
		})
	}
}
