package download

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// slowServers take long until they send a first byte.
var slowServers = map[string]func(delay time.Duration) http.HandlerFunc{
	// The page is made anew for each request.
	"each request": func(delay time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if isAwaited(r, delay) {
				content(w, r)
			}
		}
	},
	// A cache fetches the file once, for whoever waits until it has.
	"the first request": func(delay time.Duration) http.HandlerFunc {
		var warm atomic.Bool
		return func(w http.ResponseWriter, r *http.Request) {
			if !warm.Load() && !isAwaited(r, delay) {
				return
			}
			warm.Store(true)
			content(w, r)
		}
	},
	// A cache goes on to fetch the file, also for those who come later.
	"until it has begun": func(delay time.Duration) http.HandlerFunc {
		var since atomic.Pointer[time.Time]
		return func(w http.ResponseWriter, r *http.Request) {
			now := time.Now()
			since.CompareAndSwap(nil, &now)
			if isAwaited(r, time.Until(since.Load().Add(delay))) {
				content(w, r)
			}
		}
	},
}

// isAwaited reports whether the client still waits after that time.
func isAwaited(r *http.Request, delay time.Duration) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-time.After(delay):
		return true
	}
}

// A server that takes long to answer is not asked again and again, by any kind of HTTP.
func TestASlowFirstByteIsNotADeadLink(t *testing.T) {
	for what, slow := range slowServers {
		for _, delay := range []time.Duration{2, 8, 11, 15, 30, 120} {
			for http1 := range 2 {
				for links := 1; links <= 2; links++ {
					delay := delay * time.Second
					t.Run(fmt.Sprintf("%s, %v, HTTP/%d, %d links", what, delay, 2-http1, links), func(t *testing.T) {
						t.Parallel()
						fast := simLink{rate: 20e6, rtt: wifi.rtt}
						var asked atomic.Int32
						handler := slow(delay)
						summary, events := rescued(t, schedule.Adaptive{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							asked.Add(1)
							handler(w, r)
						}), "", func(o *Options, n *network) {
							for i, l := range []simLink{fast, {rate: fast.rate / 2, rtt: lte.rtt}} {
								o.Links[i].Dial = n.dial(l)
							}
							o.Links = o.Links[:links]
							over(o, http1)
						})
						curl := delay.Seconds() + float64(len(file))/fast.rate.BytesPerSecond()
						within(t, "download time", seconds(summary.Download), 0, 1.2*curl)
						testkit.Holds(t, len(of[*rundir.Ban](events)) == 0, "a link was left alone")
						t.Logf("%.1f times as long as curl by %d requests", seconds(summary.Download)/curl, asked.Load())
						testkit.Holds(t, asked.Load() <= 40, "too many requests", asked.Load())
					})
				}
			}
		}
	}
}

// A link that dies while the server takes long is left as soon as one that nothing
// comes over, and the other one does what it was asked for.
func TestALinkThatDiesWhileAServerTakesLong(t *testing.T) {
	for http1 := range 2 {
		summary, _ := rescued(t, schedule.Adaptive{}, slowServers["each request"](15*time.Second), "", func(o *Options, n *network) {
			over(o, http1)
			time.AfterFunc(5*time.Second, n.wifi.freeze)
			time.AfterFunc(5*time.Second, func() { n.wifi.set(0) })
			time.AfterFunc(12*time.Second, func() {
				testkit.Holds(t, n.wifi.dialled() >= 3, "the dead link was not connected again, over HTTP", 2-http1)
			})
		})
		within(t, "download time", seconds(summary.Download), 15, 50) // What it had comes in two requests.
	}
}

// A server that lets everybody in and never answers ends the download in time, which
// says so, by few connections. Over HTTP/1.1 each further question needs one.
func TestAServerThatNeverAnswers(t *testing.T) {
	for http1 := range 2 {
		dials := 0
		never := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		summary, _ := rescued(t, schedule.Adaptive{}, http.HandlerFunc(never), "nothing new arrived for 5m0s: link wifi: the server is there, and has not answered", func(o *Options, n *network) {
			o.Links = o.Links[:1]
			over(o, http1)
			time.AfterFunc(4*time.Minute, func() { dials = n.wifi.dialled() })
		})
		within(t, "time of the failure", seconds(summary.Download), 300, 300.1)
		testkit.Holds(t, dials <= 2+http1, "version of HTTP, and connections", 2-http1, dials)
	}
}

// What comes as a whole, and a first question by HEAD, is waited for as well.
func TestASlowAnswerOfOtherKinds(t *testing.T) {
	const delay = 15 * time.Second
	for name, test := range map[string]struct {
		scheduler schedule.Scheduler
		handler   http.HandlerFunc
	}{
		"the whole": {schedule.Adaptive{}, noRanges},
		"HEAD":      {asksByHead, content},
	} {
		for http1 := range 2 {
			handler := func(w http.ResponseWriter, r *http.Request) {
				if isAwaited(r, delay) {
					test.handler(w, r)
				}
			}
			summary, events := rescued(t, test.scheduler, http.HandlerFunc(handler), "", func(o *Options, _ *network) {
				over(o, http1)
			})
			within(t, name+": download time", seconds(summary.Download), 0, 5.1*delay.Seconds()) // It is asked up to five times, until it is taken whole.
			testkit.Holds(t, len(of[*rundir.Ban](events)) == 0, "a link failed", name, 2-http1)
		}
	}
}

// Nor does the first question of one without ranges, when nobody answers it, keep the other link from asking.
func TestAnotherLinkAsksWhatAServerDoesNotAnswer(t *testing.T) {
	for name, scheduler := range map[string]schedule.Scheduler{"adaptive": schedule.Adaptive{}, "HEAD": asksByHead} {
		var hung atomic.Bool
		handler := func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead && hung.CompareAndSwap(false, true) {
				<-r.Context().Done()
				return
			}
			noRanges(w, r)
		}
		summary, _ := rescued(t, scheduler, http.HandlerFunc(handler), "", nil)
		within(t, name+": download time", seconds(summary.Download), 0.4, 10)
	}
}

// A question that fails is asked again, though another one on its session was answered meanwhile.
func TestAQuestionThatFailsIsAskedAgain(t *testing.T) {
	var heads atomic.Int32
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Range") == "bytes=0-32767":
			time.Sleep(1500 * time.Millisecond)
		case r.Header.Get("Range") != "":
			time.Sleep(time.Second)
		case r.Method == http.MethodHead && heads.Add(1) == 1:
			time.Sleep(300 * time.Millisecond)
			panic(http.ErrAbortHandler)
		}
		noRanges(w, r)
	}
	summary, _ := rescued(t, schedule.Adaptive{}, http.HandlerFunc(handler), "", func(o *Options, _ *network) { o.Links = o.Links[:1] })
	within(t, "download time", seconds(summary.Download), 1.5, 60)
}

// A server that is too busy for the first requests of a link, and names no time, is asked by HEAD the third time.
func TestABusyServerIsAskedByHead(t *testing.T) {
	serve(t, file[:1000])
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 166))
		busy, waits := random.IntN(6), random.IntN(3) == 0
		code := []int{408, 429, 500, 502, 503, 504}[random.IntN(6)]
		var refused, heads atomic.Int32
		rescued(t, rescuers["adaptive"], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodHead:
				heads.Add(1)
			case refused.Load() < int32(busy) && heads.Load() == 0:
				refused.Add(1)
				if waits {
					w.Header().Set("Retry-After", "1")
				}
				http.Error(w, "busy", code)
				return
			}
			content(w, r)
		}), "", func(o *Options, _ *network) { o.Links = o.Links[:1] })
		want := int32(0)
		if busy >= 3 && !waits {
			busy, want = 3, 1
		}
		testkit.Holds(t, heads.Load() == want && refused.Load() == int32(busy), "refused requests, code, Retry-After, HEADs, and how many should be", refused.Load(), code, waits, heads.Load(), want)
	}
}

// asked is a socket whose other end has acknowledged all, or not, and that counts how often it is asked. So many packets
// have come out of order.
type asked struct {
	closedSocket
	all        bool
	times      int
	outOfOrder uint32
}

func (a *asked) Answered() (time.Duration, bool, error) { return 0, a.all, nil }
func (a *asked) Ask() error                             { a.times++; return nil }
func (a *asked) RoundTrip() (link.RoundTrip, error) {
	return link.RoundTrip{OutOfOrder: a.outOfOrder}, nil
}

// A session that has answered a request is dead after its silence. One that has answered none is asked at half of it,
// and is dead after half as long again if only TCP can ask, unless TCP has bytes that nobody acknowledged.
func TestASilentSessionIsAskedBeforeItIsDead(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 54))
		d, _ := deciding(0)
		socket := &asked{all: random.IntN(2) == 0}
		c, hasAnswer := d.connections[0], random.IntN(3) == 0
		c.session.Conn = &transport.Conn{Socket: socket}
		c.active[0].session, c.active[0].received = c.session, 0
		if hasAnswer {
			c.active[0].received = 1
		}
		limit := c.silence(c.session)
		c.session.heardAt = time.Minute
		passed := time.Duration(random.Int64N(int64(2 * limit)))
		isDead, isAsked := passed > limit, false
		if !hasAnswer && socket.all {
			isDead, isAsked = passed > limit*3/2, passed > limit/2
		}
		got := d.isDead(c, c.session, time.Minute+passed)
		again := d.isDead(c, c.session, time.Minute+passed)
		d.perform()
		testkit.Holds(t, got == isDead && again == isDead && socket.times <= 1 && (socket.times == 1) == isAsked,
			"passed, of, has an answer, all acknowledged; dead, asked", passed, limit, hasAnswer, socket.all, got, socket.times)
	}
}
