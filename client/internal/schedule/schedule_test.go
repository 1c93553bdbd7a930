package schedule

import (
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/tests/testkit"
)

// kB is the kilobyte of the thesis.
const kB = 1000

func link(throughput, bandwidth float64, rtt time.Duration) Link {
	return Link{Requests: 1, Throughput: quantity.Rate(8 * throughput * kB), Bandwidth: quantity.Rate(8 * bandwidth * kB), RTT: rtt}
}

// The expected sizes are the thesis' worked examples, truncated to whole kilobytes.
func TestWorkedExamples(t *testing.T) {
	for _, example := range []struct {
		name      string
		scheduler Scheduler
		known     Known
		want      []quantity.Bytes // kB
	}{
		{
			"algorithm 1, thesis figure 4.6",
			Alg1{UpperLimit: 4000 * kB},
			Known{Payload: 250_000 * kB, Links: []Link{link(1600, 0, 0), link(800, 0, 0)}},
			[]quantity.Bytes{2666, 1333},
		},
		{
			"algorithm 2, thesis 4.3.4, example 1",
			Alg2{},
			Known{Payload: 250_000 * kB, Links: []Link{link(1600, 30_000, 0), link(800, 30_000, 0)}},
			[]quantity.Bytes{3333, 1666},
		},
		{
			"algorithm 2, thesis 4.3.4, example 2",
			Alg2{},
			Known{Payload: 250_000 * kB, Links: []Link{link(8000, 30_000, 0), link(800, 30_000, 0)}},
			[]quantity.Bytes{16666, 1666},
		},
		{
			"algorithm 3, thesis 4.3.5: the second link is lifted to its BDP",
			Alg3{Padding: 1},
			Known{Payload: 250_000 * kB, Links: []Link{
				link(1600, 30_000, 20*time.Millisecond),
				link(400, 30_000, 40*time.Millisecond),
			}},
			[]quantity.Bytes{3333, 1200},
		},
		{
			// s = 20 000/2 · r/B = 10 000 with r = B, BDP = 2000, f = 0.3.
			"algorithm 3, example of padding in thesis 4.3.5, with 10000 - 2000 = 8000",
			Alg3{Padding: 0.3},
			Known{Payload: 20_000 * kB, Links: []Link{
				link(10_000, 10_000, 200*time.Millisecond),
				link(0, 0, 0),
			}},
			[]quantity.Bytes{4400},
		},
		{
			// The thesis continues with 9000: 2000 + 0.3 · 7000.
			"algorithm 3, example of padding in thesis 4.3.5, with 9000 - 2000 = 7000",
			Alg3{Padding: 0.3},
			Known{Payload: 18_000 * kB, Links: []Link{
				link(10_000, 10_000, 200*time.Millisecond),
				link(0, 0, 0),
			}},
			[]quantity.Bytes{4100},
		},
		{
			"algorithm 3 padded does not pad what is lifted to the BDP",
			Alg3{Padding: 0.1},
			Known{Payload: 250_000 * kB, Links: []Link{
				link(1600, 30_000, 20*time.Millisecond),
				link(400, 30_000, 40*time.Millisecond),
			}},
			[]quantity.Bytes{600 + 273, 1200},
		},
	} {
		t.Run(example.name, func(t *testing.T) {
			for x, want := range example.want {
				testkit.Same(t, example.scheduler.Next(x, example.known)/kB, want, x+1)
			}
		})
	}
}

// D of algorithm 2 is payload/n · Σr/ΣB (thesis figure 4.8). The link whose request is checked
// has other rates than the others.
func TestTheDynamicLimitIsDividedByTheNumberOfLinks(t *testing.T) {
	for n := 2; n <= 8; n++ {
		known := Known{Payload: 250_000 * kB, Links: []Link{link(4000, 5000, 0)}}
		for len(known.Links) < n {
			known.Links = append(known.Links, link(1000, 3000, 0))
		}
		bandwidth := float64(5000 + (n-1)*3000)
		want := quantity.Bytes(250_000 / float64(n) * 4000 / bandwidth * kB)
		for _, s := range []Scheduler{Alg2{}, Alg3{Padding: 1}} {
			if got := s.Next(0, known); got < want-1 || got > want+1 {
				t.Errorf("%T, %d links: %d bytes, want %d", s, n, got, want)
			}
		}
	}
}

func TestFirstRequestsShareTheInitialSize(t *testing.T) {
	fresh := Known{Payload: 250_000 * kB, Links: make([]Link, 3)}
	for _, s := range []Scheduler{
		Alg1{UpperLimit: 4000 * kB, FirstRequests: 1000},
		Alg2{FirstRequests: 1000},
		Alg3{FirstRequests: 1000, Padding: 0.1},
	} {
		var got [3]quantity.Bytes
		for x := range got {
			got[x] = s.Next(x, fresh)
		}
		testkit.Same(t, got, [3]quantity.Bytes{333, 333, 334}, s)
	}
}

func TestNaiveSplitsEquallyAndOnce(t *testing.T) {
	known := Known{Payload: 1001, Links: make([]Link, 2)}
	first, second := Naive{}.Next(0, known), Naive{}.Next(1, known)
	testkit.Holds(t, first == 500 && second == 501, first, second)
	known.Links[1].Requests = 1
	testkit.Same(t, (Naive{}).Next(1, known), 0)
}

func TestSingleRequestsAll(t *testing.T) {
	known := Known{Payload: 1001, Links: make([]Link, 1)}
	for range 2 {
		testkit.Same(t, (Single{}).Next(0, known), 1001)
		known.Links[0].Requests++
	}
}

// An unmeasured or almost stalled link must not cause a flood of tiny requests.
func TestRequestsHaveAMinimum(t *testing.T) {
	silent := Known{Payload: 250_000 * kB, Links: []Link{{Requests: 1}, {Requests: 1}}}
	crawling := Known{Payload: 250_000 * kB, Links: []Link{link(0.001, 10_000, 0), link(10_000, 10_000, 0)}}
	for _, known := range []Known{silent, crawling} {
		for _, s := range []Scheduler{Alg1{UpperLimit: 1000 * kB}, Alg2{}, Alg3{Padding: 0.1}} {
			testkit.Same(t, s.Next(0, known), MinimumRequest, s, known.Links[0])
		}
	}
}
