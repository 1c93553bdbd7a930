package download

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// halting sends a body with pauses.
type halting struct {
	http.ResponseWriter
	sent int
	// pauses are by what was sent before, in bytes.
	pauses map[int]time.Duration
	of     *http.Request
}

// servers is how many servers a test draws: what the variable says, or so many.
func servers(variable string, usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(variable), 10, 64); err == nil {
		return n
	}
	return usual
}

func (p *halting) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n := min(len(b)-done, 1000)
		for at, d := range p.pauses {
			if at < p.sent+n {
				isAwaited(p.of, d)
				delete(p.pauses, at)
			}
		}
		n, err := p.ResponseWriter.Write(b[done : done+n])
		p.sent, done = p.sent+n, done+n
		if err != nil {
			return done, err
		}
		p.ResponseWriter.(http.Flusher).Flush()
	}
	return len(b), nil
}

// The only answer of a URL that works once may be late, may pause, and its link may be cut meanwhile.
// It is the file all the same.
func TestOnlyAnswersThatPause(t *testing.T) {
	for seed := range servers("LINKLAB_ONCE_SERVERS", 40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			draw := rand.New(rand.NewPCG(seed, 49))
			upTo := func(most time.Duration) time.Duration { return time.Duration(draw.Int64N(int64(most))) }
			late := upTo(8*time.Second) * time.Duration(draw.IntN(2))
			pauses := map[int]time.Duration{}
			for range draw.IntN(4) {
				pauses[draw.IntN([]int{100, 100_000, len(file)}[draw.IntN(3)])] = upTo(8 * time.Second)
			}
			code := []int{http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusFound}[draw.IntN(4)]
			var used atomic.Bool
			handler := func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/file" && r.Method == http.MethodGet && used.CompareAndSwap(false, true) {
					only := &halting{ResponseWriter: w, pauses: pauses, of: r}
					isAwaited(r, late)
					content(only, r)
					return
				}
				if r.URL.Path == "/login" {
					w.Header().Set("Content-Type", "text/html")
					_, _ = w.Write([]byte("<html>"))
					return
				}
				w.Header().Set("Location", "/login")
				w.WriteHeader(code)
			}
			rescued(t, schedulers["adaptive"], http.HandlerFunc(handler), "", func(o *Options, n *network) {
				over(o, draw.IntN(2))
				o.Connections = &transfer.Connections{Most: 1 + draw.IntN(3)}
				for range draw.IntN(3) {
					c, from := []*cable{n.wifi, n.lte}[draw.IntN(2)], 50*time.Millisecond+upTo(3*time.Second)
					time.AfterFunc(from, func() { c.set(0) })
					time.AfterFunc(from+upTo(5*time.Second), func() { c.set(1) })
				}
			})
		})
	}
}

// An only answer that stays silent is given up after longestPause. Links that the server refused ask again then.
func TestRefusedLinksAskAgainWhereTheOnlyAnswerStaysSilent(t *testing.T) {
	for _, sent := range []int{0, 1, 100_000} {
		var used atomic.Bool
		begin := time.Now()
		handler := func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet && used.CompareAndSwap(false, true):
				content(&halting{ResponseWriter: w, pauses: map[int]time.Duration{sent: time.Hour}, of: r}, r)
			case time.Since(begin) < longestPause/2:
				w.WriteHeader(http.StatusForbidden)
			default:
				content(w, r)
			}
		}
		summary, _ := rescued(t, schedulers["adaptive"], http.HandlerFunc(handler), "", func(o *Options, _ *network) {
			o.GiveUp, begin = 4*longestPause, time.Now()
		})
		within(t, "download time", seconds(summary.Download), longestPause.Seconds(), longestPause.Seconds()+5)
	}
}

// A duplicate ends the request that it duplicates. Bytes behind the duplicated ones would be lost.
func TestAnAnswerThatIsDuplicatedDoesNotGoOn(t *testing.T) {
	f := newDownload(Options{})
	c := someLink(0).first()
	c.session = new(session)
	follows := order{Range: ranges.Range{Offset: 50, Length: 10}}
	for what, test := range map[string]struct {
		change func(r *request, next *order)
		goesOn bool
	}{
		"the next bytes":    {func(*request, *order) {}, true},
		"other bytes":       {func(_ *request, next *order) { next.Offset++ }, false},
		"another session":   {func(r *request, _ *order) { r.session = new(session) }, false},
		"a duplicated rest": {func(r *request, _ *order) { r.duplicate = new(request) }, false},
		"a duplicate":       {func(_ *request, next *order) { next.of = new(request) }, false},
	} {
		r, next := &request{Range: ranges.Range{Length: 100}, limit: 50, session: c.session, isWhole: true}, follows
		test.change(r, &next)
		testkit.Same(t, f.mayExtend(c, r, next), test.goesOn, what)
	}
}
