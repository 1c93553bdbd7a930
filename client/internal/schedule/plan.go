package schedule

import (
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/quantity"
)

// A Planner is a Scheduler that also decides which links are used. Every download
// has its own Plan, which keeps state.
type Planner interface {
	Scheduler
	Plan() Plan
}

// A Plan decides for one download. It can also be a Segmenter, a Pipeliner, a
// Forsaker, an Opener or a Waiter.
type Plan interface {
	// Every returns the interval between two checks of the links.
	Every() time.Duration
	// Use sets use[x] if link x is used from now on. An unused link gets no requests
	// and is not connected. The engine calls Use at every check and before every
	// decision, also before the size is known.
	Use(s *Scene, use []bool)
}

// A Segmenter divides segments among the links instead of choosing sizes.
type Segmenter interface {
	// Segment returns the size of the next segment, which link x requests.
	Segment(x int, s *Scene) quantity.Bytes
	// Share divides a segment that link x requests. Link x gets the rest that
	// shares gives to no other link.
	Share(x int, segment quantity.Bytes, s *Scene, shares []quantity.Bytes)
	// Recover reports whether link x, which is about to be idle, helps link other
	// with rest outstanding bytes. The next byte in order is one of these. Help
	// costs link other its connection.
	Recover(x, other int, rest quantity.Bytes, s *Scene) bool
}

// A Pipeliner decides when a link sends its next request: when Ahead bytes of the
// newest request are left. pipe is the number of bytes that keeps the link busy
// until the answer begins.
type Pipeliner interface {
	Ahead(pipe quantity.Bytes) quantity.Bytes
}

// A Forsaker stops the use of links for good.
type Forsaker interface {
	// Forsake reports whether the busy link x hands its work to other links and is
	// not used again.
	Forsake(x int, s *Scene) bool
}

// An Opener begins with a request for the first bytes. Its answer brings data one
// round trip earlier than a request for the size alone.
type Opener interface {
	Opens()
}

// A Waiter knows how long a reader in order can wait for the next bytes.
type Waiter interface {
	// Waits returns this time in seconds.
	Waits(s *Scene) float64
}

// Scene holds everything that a Plan may base a decision on.
type Scene struct {
	// Known has a Payload of 0 until the size is known.
	Known
	Now time.Duration
	// Left counts the missing bytes. Free counts those of them that no link has requested.
	Left, Free quantity.Bytes
	// Start is the offset of the payload in the resource. InOrder is the offset of
	// the first missing byte.
	Start, InOrder quantity.Bytes
	// Progress has one entry for each link of Known.
	Progress []Progress
}

// Reach notes bytes that a request in flight has brought. If the first missing byte is among them,
// InOrder is behind them.
func (s *Scene) Reach(from, to quantity.Bytes) {
	if from <= s.InOrder && s.InOrder < to {
		s.InOrder = to
	}
}

// Progress describes what a link has done so far.
type Progress struct {
	// Kind is the kind of the link, if known.
	Kind energy.Kind
	// Usable is true if the link is connected and may take requests.
	Usable bool
	// Received counts the bytes that arrived over the link.
	Received quantity.Bytes
	// Age is the time since the first request. Silence is the time since the last
	// byte, or since the first request if no byte has arrived.
	Age, Silence time.Duration
	// Goodput is the mean rate of the present subsegment, or of the last one. It is
	// 0 if unknown.
	Goodput quantity.Rate
	// Finished counts the finished subsegments.
	Finished int
	// Unfinished counts the bytes that were assigned to the link and are missing.
	Unfinished quantity.Bytes
}

// usedOnly returns k without the links that the plan does not use, and the index of
// link x in it. Link x itself always stays.
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

// useKind uses only the links of one kind, or the first link if there is none.
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
