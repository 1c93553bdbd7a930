package download

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/linklab/linklab/client/tests/testkit"
)

var stateNames = [...]string{"gone", "down", "spared", "connecting", "silent", "backing off", "refused", "ready"}

func (s state) String() string { return stateNames[s] }

// mayBecome reports whether one event can lead from a state to another one. Links, plans and servers change by themselves,
// so nearly all states can follow each other.
func (s state) mayBecome(next state) bool {
	switch s {
	case next:
		return true
	case gone:
		return false
	case connecting:
		return next != silent // A new session is not silent yet.
	}
	return true
}

// A connection is in the first state that fits it, whatever else is true of it.
func TestAConnectionIsInTheFirstStateThatFits(t *testing.T) {
	const now = time.Second
	c := someLink(0).first()
	c.session = new(session)
	worse := []struct {
		is   state
		make func()
	}{
		{ready, func() {}},
		{refused, func() { c.link.isSpent = true }},
		{refused, func() { c.link.isSpent, c.link.refused = false, errors.New("416") }},
		{backingOff, func() { c.notBefore = now + 1 }},
		{silent, func() { c.suspect = true }},
		{connecting, func() { c.session.draining = true }},
		{connecting, func() { c.session = nil }},
		{spared, func() { c.link.spared = true }},
		{down, func() { c.link.down = true }},
		{gone, func() { c.out = errors.New("gone") }},
	}
	for _, one := range worse {
		one.make()
		testkit.Same(t, c.state(now), one.is, "the state")
		testkit.Same(t, c.usable(now), one.is == ready, "it is usable", one.is)
		testkit.Same(t, c.needsSession(), one.is == connecting || one.is == silent, "it needs a session", one.is)
	}
}

// The handbook explains each state.
func TestTheHandbookHasEachState(t *testing.T) {
	page, err := os.ReadFile("../../../emulator/handbook/explanation/the-client.md")
	testkit.OK(t, err)
	for is := gone; is <= ready; is++ {
		testkit.Holds(t, strings.Contains(string(page), "\n| "+is.String()+" |"), "the page has no state", is)
	}
}
