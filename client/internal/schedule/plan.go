package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// A Planner is a Scheduler that decides more than sizes: which links are used,
// at least. Every download has a Plan of its own, which remembers.
type Planner interface {
	Scheduler
	Plan() Plan
}

// A Plan decides for one download. It may also be a Segmenter, a Pipeliner or
// a Forsaker.
type Plan interface {
	// Every is the time between two looks at the links.
	Every() time.Duration
	// Use says of each link whether it is used from now on: one that is not
	// gets no requests, and is not connected. It is asked with every look, and
	// before every decision, from the time before the size is known on.
	Use(s *Scene, use []bool)
}

// A Segmenter gives links parts of segments instead of sizes.
type Segmenter interface {
	// Segment is the size of the next segment, which link x asks for.
	Segment(x int, s *Scene) quantity.Bytes
	// Share divides a segment that link x asks for. What it gives to no link
	// is x's.
	Share(x int, segment quantity.Bytes, s *Scene, shares []quantity.Bytes)
	// Recover says whether link x, which is about to have nothing to do, is to
	// help with rest bytes that another one has still to deliver, and that the
	// next byte in order is one of. That costs the other one its connection.
	Recover(x, other int, rest quantity.Bytes, s *Scene) bool
}

// A Pipeliner says when a link's next request is sent: when that many bytes of
// its newest are left. pipe is what keeps the link at work until the answer
// begins.
type Pipeliner interface {
	Ahead(pipe quantity.Bytes) quantity.Bytes
}

// A Forsaker gives links up for good.
type Forsaker interface {
	// Forsake says whether link x, which has work, is to lose it to others and
	// not to be used any more.
	Forsake(x int, s *Scene) bool
}

// An Opener begins with a question for the first bytes, which a server answers a
// round trip earlier than one for the size alone.
type Opener interface {
	Opens()
}

// A Waiter knows for how long who reads in order can do without the next bytes.
type Waiter interface {
	// Waits is that time, in seconds.
	Waits(s *Scene) float64
}

// Scene is what a Plan may base a decision on.
type Scene struct {
	// Known has the payload's size, 0 before it is known.
	Known
	Now time.Duration
	// Left is what has not arrived, and Free what of that no link was given.
	Left, Free quantity.Bytes
	// Start is the offset of the payload in the resource, and InOrder that of
	// the first byte which has not arrived.
	Start, InOrder quantity.Bytes
	// Progress is that of each link of Known.
	Progress []Progress
}

// Progress is what a link has done.
type Progress struct {
	// Kind is what the link is, if that is known.
	Kind energy.Kind
	// Usable says that it is connected, and nothing speaks against it.
	Usable bool
	// Received is what the network has brought for it.
	Received quantity.Bytes
	// Age is the time since its first request, and Silence that since its last
	// byte, or its first request.
	Age, Silence time.Duration
	// Goodput is the mean over its present subsegment, or the last one; 0 if
	// nothing is known.
	Goodput quantity.Rate
	// Finished counts the subsegments of which that was the goodput.
	Finished int
	// Unfinished is what it was given and has not brought.
	Unfinished quantity.Bytes
}

// usedOnly is what is known of the links that are used, and where link x is
// among them.
func (k Known) usedOnly(x int) (int, Known) {
	used := Known{Payload: k.Payload}
	at := 0
	for i, l := range k.Links {
		if i == x {
			at = len(used.Links)
		}
		if !l.Spared || i == x {
			used.Links = append(used.Links, l)
		}
	}
	return at, used
}

// useAll uses every link.
func useAll(use []bool) {
	for x := range use {
		use[x] = true
	}
}

// useKind uses the links of a kind alone, or the first link if there is none.
func useKind(kind energy.Kind, s *Scene, use []bool) {
	found := false
	for x, p := range s.Progress {
		use[x] = p.Kind == kind
		found = found || use[x]
	}
	if !found && len(use) > 0 {
		use[0] = true
	}
}
