package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/energy"
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/schedule"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/tests/testkit"
)

// parameters are those of all algorithms: small requests for a small file.
var parameters = schedule.Parameters{
	UpperLimit: 1e6, FirstRequests: 500_000, Padding: 0.1, Segment: 500_000,
	Player: schedule.Player{Rate: 12e6, Buffer: 200_000},
	Model: &energy.Model{SharedMW: 322, Radios: map[energy.Kind]*energy.Radio{
		energy.Wifi: {ActiveMW: 193, DownMJ: 52},
		energy.LTE:  {ActiveMW: 966, DownMJ: 52, Tail: []energy.State{{PowerMW: 1060, Time: 11 * time.Second}}},
	}},
}

// schedulers are all that use several links, and rescuers those with rescue, with small requests for a small file.
var schedulers, rescuers = func() (all, rescuers map[string]schedule.Scheduler) {
	all, rescuers = map[string]schedule.Scheduler{}, map[string]schedule.Scheduler{}
	for _, a := range schedule.Algorithms {
		if !a.OneLink {
			all[a.Name] = a.Scheduler(parameters)
		}
		if a.Rescue {
			rescuers[a.Name] = a.Scheduler(parameters)
		}
	}
	return all, rescuers
}()

// asksByHead asks by HEAD first, as every download does that continues a file. askers are both ways to ask.
var (
	asksByHead = schedulers["alg3"]
	askers     = map[string]schedule.Scheduler{"HEAD first": asksByHead, "the file first": rescuers["adaptive"]}
)

// slack is by how much longer a download may take with a rescuer that does not use all links all the time.
func slack(name string) float64 {
	if name == "adaptive-energy" {
		return 20 // one link alone, and be it almost dead
	}
	return 1
}

// network is two links with cables.
type network struct {
	*simNet
	wifi, lte *cable
	// wifiChange and lteChange report changes of the devices.
	wifiChange, lteChange chan link.Change
}

// harm resets, freezes, slows and cuts cables at up to six times within that time; after 4 s both carry again.
func (n *network) harm(random *rand.Rand, within time.Duration) {
	for range 1 + random.IntN(6) {
		c := []*cable{n.wifi, n.lte}[random.IntN(2)]
		at := time.Duration(random.Int64N(int64(within)))
		switch random.IntN(4) {
		case 0:
			time.AfterFunc(at, c.reset)
		case 1:
			time.AfterFunc(at, c.freeze)
		case 2:
			factor := random.Float64() * random.Float64()
			time.AfterFunc(at, func() { c.set(factor) })
		case 3:
			time.AfterFunc(at, func() { c.set(0) })
		}
	}
	time.AfterFunc(4*time.Second, func() { n.wifi.set(1); n.lte.set(1) })
}

// rescued downloads with rescue over links that may be cut. It returns without complaint if want is empty and the file
// is whole, or if the error has the text want.
func rescued(t *testing.T, s schedule.Scheduler, handler http.Handler, want string, change func(*Options, *network)) (rundir.Summary, *log) {
	t.Helper()
	summary, events, err := try(t, handler, func(o *Options, n *simNet) {
		net := &network{
			simNet: n, wifi: newCable(), lte: newCable(),
			wifiChange: make(chan link.Change, 9), lteChange: make(chan link.Change, 9),
		}
		a, b := wifi, lte
		a.name, b.name, a.cable, b.cable = "wifi", "lte", net.wifi, net.lte
		o.Links[0].Dial, o.Links[1].Dial = n.dial(a), n.dial(b)
		o.Links[0].Watch, o.Links[1].Watch = watch(net.wifiChange), watch(net.lteChange)
		o.Rescue, o.GiveUp = true, 5*time.Minute
		o.Scheduler = s
		if _, ok := s.(schedule.Adaptive); ok {
			// A simLink is as fast for each of its connections.
			o.Connections = &transfer.Connections{Most: 1}
		}
		if change != nil {
			change(o, net)
		}
	})
	testkit.Holds(t, (want != "" || err == nil) && (want == "" || err != nil && strings.Contains(err.Error(), want)), "the error is", err, want)
	checkEvents(t, summary, events)
	return summary, events
}

// watch reports what comes on a channel.
func watch(changes <-chan link.Change) func(context.Context, func(link.Change)) {
	return func(ctx context.Context, report func(link.Change)) {
		for {
			select {
			case <-ctx.Done():
				return
			case c := <-changes:
				report(c)
			}
		}
	}
}

// checkEvents checks what holds whatever happens: bytes that a request
// received were assigned to it, none twice, and all of a complete file.
func checkEvents(t *testing.T, summary rundir.Summary, events *log) {
	t.Helper()
	requested := map[int]ranges.Range{}
	var arrived ranges.Set
	for _, e := range events.events {
		switch e := e.(type) {
		case *rundir.Request:
			testkit.Holds(t, e.Length > 0 || summary.Size == 0 || e.Offset == 0, "a request is of no bytes", e)
			requested[e.ID] = ranges.Range{Offset: quantity.Bytes(e.Offset), Length: quantity.Bytes(e.Length)}
		case *rundir.End:
			r := requested[e.ID]
			whole := r.Length == 0 || r.Length == summary.Size
			if whole && e.Bytes == int64(summary.Size) {
				arrived = ranges.Set{} // It began again.
			}
			if whole {
				// It wrote what those before it had not.
				fill(&arrived, quantity.Bytes(e.Bytes))
				continue
			}
			testkit.Holds(t, quantity.Bytes(e.Bytes) <= r.Length, "a request received more than its bytes", e.ID, e.Bytes, r.Length)
			r.Length = quantity.Bytes(e.Bytes)
			testkit.Holds(t, arrived.Remove(r) == 0, "bytes of a request arrived twice", e.ID, r)
			arrived.Add(r)
		}
	}
	testkit.Holds(t, summary.Outcome != rundir.Complete || summary.Size == 0 || summary.Resumed > 0 || arrived.First() == (ranges.Range{Length: summary.Size}), "the only bytes that events tell of", arrived.Ranges())
}

// fill adds the first bytes that are not in the set.
func fill(set *ranges.Set, bytes quantity.Bytes) {
	missing := ranges.NewSet(ranges.Range{Length: set.Bytes() + bytes})
	for _, have := range set.Ranges() {
		missing.Remove(have)
	}
	for _, hole := range missing.Ranges() {
		hole.Length = min(hole.Length, bytes)
		set.Add(hole)
		bytes -= hole.Length
	}
	set.Add(ranges.Range{Offset: set.First().End(), Length: bytes})
}

// ideal is how long both links together need for the file.
func ideal() float64 { return float64(len(file)) / (wifi.rate + lte.rate).BytesPerSecond() }

// Nobody is idle while bytes are missing: every rescuer ends near the ideal.
func TestRescueBalancesEveryAlgorithm(t *testing.T) {
	for name, s := range rescuers {
		t.Run(name, func(t *testing.T) {
			summary, events := rescued(t, s, http.HandlerFunc(content), "", nil)
			if slack(name) > 1 {
				within(t, "download time over ideal", seconds(summary.Download)/ideal(), 1, 1.8)
				return
			}
			for _, name := range []string{"wifi", "lte"} {
				within(t, "time that "+name+" had nothing to do", idle(events, name).Seconds(), 0, 0.005)
			}
			within(t, "download time over ideal", seconds(summary.Download)/ideal(), 1, 1.3)
			a, b := summary.Links["wifi"].Finish, summary.Links["lte"].Finish
			within(t, "time between the links' ends", max(seconds(a-b), seconds(b-a)), 0, 0.045)
		})
	}
}

// idle is how long a link had no request between its first and its last one.
func idle(events *log, link string) (sum time.Duration) {
	active, since := 0, time.Duration(-1)
	for i, e := range events.events {
		switch e := e.(type) {
		case *rundir.Request:
			if e.Link == link {
				if active == 0 && since >= 0 {
					sum += events.times[i] - since
				}
				active++
			}
		case *rundir.End:
			if e.Link == link {
				active--
				since = events.times[i]
			}
		}
	}
	return sum
}

func TestLinkIsLostForGood(t *testing.T) {
	for name, s := range rescuers {
		faults := map[string]func(*network){
			"no device":      func(n *network) { n.wifi.set(0); n.wifiChange <- link.Down },
			"nothing passes": func(n *network) { n.wifi.set(0) },
			"reset":          func(n *network) { n.wifi.set(0); n.wifi.reset() },
			"almost nothing": func(n *network) { n.wifi.set(0.0002) },
			"a tenth":        func(n *network) { n.wifi.set(0.1) },
		}
		for fault, cut := range faults {
			t.Run(name+", "+fault, func(t *testing.T) {
				t.Parallel()
				if fault == "nothing passes" || fault == "reset" {
					summary, events := rescued(t, s, http.HandlerFunc(content), "", func(o *Options, n *network) {
						over(o, 1)
						time.AfterFunc(200*time.Millisecond, func() { cut(n) })
					})
					within(t, "download time over HTTP/1.1", seconds(summary.Download), 0.45, 1.5*slack(name))
					fewRequests(t, events)
				}
				summary, events := rescued(t, s, http.HandlerFunc(content), "", func(_ *Options, n *network) {
					time.AfterFunc(200*time.Millisecond, func() { cut(n) })
				})
				// 1.6 MB have come by wifi and 0.6 MB by lte.
				within(t, "download time", seconds(summary.Download), 0.6, 1.25*slack(name))
				testkit.Holds(t, fault == "a tenth" || len(of[*rundir.Failover](events)) != 0, "no failover is recorded")
			})
		}
	}
}

// over makes a download use HTTP/2, or with 1 HTTP/1.1.
func over(o *Options, http1 int) {
	if http1 == 1 {
		o.TLS = o.TLS.Clone()
		o.TLS.NextProtos = []string{"http/1.1"}
	}
}

// loseAll cuts all cables, and all their connections, after a while.
func (n *network) loseAll() {
	time.AfterFunc(200*time.Millisecond, func() { n.wifi.set(0); n.lte.set(0); n.wifi.reset(); n.lte.reset() })
}

// fewRequests checks that links do not take work from each other without end.
func fewRequests(t *testing.T, events *log) {
	t.Helper()
	testkit.Holds(t, len(of[*rundir.Request](events)) <= 60, "too many requests")
}

// A link that comes back is used again at once if its device says so, and soon if not.
func TestLinkComesBack(t *testing.T) {
	const back = 700 * time.Millisecond
	for i := range 4 {
		isAnnounced, isReset := i&1 > 0, i&2 > 0
		latest := 60 * time.Millisecond
		if isReset && !isAnnounced {
			latest = 560 * time.Millisecond
		}
		_, events := rescued(t, schedulers["adaptive"], http.HandlerFunc(content), "", func(o *Options, n *network) {
			slow := lte
			slow.rate, slow.cable = 16e6, n.lte
			o.Links[1].Dial = n.dial(slow)
			become := func(factor float64, change link.Change) {
				n.wifi.set(factor)
				if isAnnounced {
					n.wifiChange <- change
				}
			}
			time.AfterFunc(200*time.Millisecond, func() {
				become(0, link.Down)
				if isReset {
					n.wifi.reset()
				}
			})
			time.AfterFunc(back, func() { become(1, link.Up) })
		})
		first := time.Duration(0)
		for _, e := range of[*rundir.Request](events) {
			if at := time.Duration(e.T); e.Link == "wifi" && at > back && first == 0 {
				first = at - back
			}
		}
		testkit.Holds(t, first != 0 && first <= latest, "time until wifi is used again, announced, reset", first, isAnnounced, isReset)
	}
}

// With all links gone the download waits, and goes on with what it has.
func TestAllLinksAreGoneForAWhile(t *testing.T) {
	for name, s := range map[string]schedule.Scheduler{
		"adaptive": rescuers["adaptive"], "adaptive-energy": rescuers["adaptive-energy"], "adaptive, HTTP/1.1": rescuers["adaptive"],
	} {
		isOver1 := strings.HasSuffix(name, "HTTP/1.1")
		t.Run(name, func(t *testing.T) {
			summary, events := rescued(t, s, http.HandlerFunc(content), "", func(o *Options, n *network) {
				if isOver1 {
					over(o, 1)
				}
				n.loseAll()
				time.AfterFunc(30*time.Second, func() { n.lte.set(1) })
			})
			// 8 s of ban at most, and then what is missing by lte alone.
			within(t, "download time", seconds(summary.Download), 30.5, 39)
			fewRequests(t, events)
			var sum quantity.Bytes
			for _, l := range summary.Links {
				sum += l.Bytes
			}
			testkit.Holds(t, sum <= quantity.Bytes(len(file))+1<<20, "received bytes, and those of the file", sum, len(file))
		})
	}
}

// A download with rescue says what is wrong with its links. As published nobody looks after a link: one that is silent
// for ever must not hold the download for as long.
func TestGivingUp(t *testing.T) {
	for name, problem := range map[string]string{"adaptive": ": link wifi: ", "naive": "", "alg3": "", "gb-no-recovery": ""} {
		isRescued := problem != ""
		summary, _ := rescued(t, schedulers[name], http.HandlerFunc(content), "nothing new arrived for 1m0s"+problem, func(o *Options, n *network) {
			o.Rescue, o.GiveUp = isRescued, time.Minute
			time.AfterFunc(200*time.Millisecond, func() {
				n.wifi.set(0)
				if isRescued {
					n.lte.set(0)
				}
			})
		})
		within(t, name+": time of the failure", seconds(summary.Download), 60.1, 64)
	}
}

// Attempts to connect follow each other ever more slowly.
func TestBackOff(t *testing.T) {
	var dials []time.Time
	rescued(t, schedulers["adaptive"], http.HandlerFunc(content), "nothing new arrived", func(o *Options, n *network) {
		o.GiveUp = 30 * time.Second
		n.loseAll()
		time.AfterFunc(30*time.Second, func() { dials = n.wifi.dials })
	})
	pause := time.Duration(0)
	for i := 2; i < len(dials); i++ {
		next := dials[i].Sub(dials[i-1])
		testkit.Holds(t, next >= pause-100*time.Millisecond && next <= 8100*time.Millisecond && (i != 2 || next <= 500*time.Millisecond), "an attempt, the time since the one before, and the time before that one", i, next, pause)
		pause = next
	}
	testkit.Holds(t, len(dials) >= 6 && len(dials) <= 12, "attempts in 30 s", len(dials))
}

// A server's ways to fail end in the file, or in the error. TestAnswersByChance draws others, such as answers that break off.
func TestServerFaults(t *testing.T) {
	sum := sha256.Sum256(file)
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	// first makes a handler that lets the first n GETs be answered by fault.
	first := func(n int32, fault http.HandlerFunc) http.HandlerFunc {
		var count atomic.Int32
		return ranged(func(w http.ResponseWriter, r *http.Request) {
			if count.Add(1) <= n {
				fault(w, r)
			} else {
				content(w, r)
			}
		})
	}
	type fault struct {
		handler http.HandlerFunc
		want    string
	}
	faults := func() map[string]fault {
		return map[string]fault{
			"429 with Retry-After":       {first(2, answering(http.StatusTooManyRequests, "2")), ""},
			"429 for too long":           {ranged(answering(http.StatusTooManyRequests, "86400")), "429 Too Many Requests, and asks to wait for 24h0m0s"},
			"thinks for two seconds":     {ranged(slowServers["each request"](2 * time.Second)), ""},
			"no HEAD":                    {noHead(content), ""},
			"no HEAD, redirects":         {noHead(moved("/elsewhere/file", http.StatusFound)), ""},
			"no HEAD, redirects to http": {noHead(moved("http://server/file", http.StatusFound)), "allowed is https"},
			"no HEAD, busy":              {noHead(first(2, answering(http.StatusServiceUnavailable, "1"))), ""},
			"no HEAD, breaks off":        {noHead(first(2, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })), ""},
			"no HEAD, encodes":           {noHead(edited(encoded)), ""},
			"encodes ranges": {ranged(edited(func(h http.Header) {
				if !strings.HasPrefix(h.Get("Content-Range"), "bytes 0-") {
					encoded(h)
				}
			})), `encodes the file differently in each answer: first as "identity", now as "gzip"`},
			"no HEAD, wrong digest for who wants one": {noHead(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Want-Repr-Digest") != "" {
					w.Header().Set("Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:")
				}
				content(w, r)
			}), "but the server says 0000"},
			"no ranges, and it says so": {func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("Range")
				edited(refusing206)(w, r)
			}, ""},
			"no ranges, and it does not say so": {ranged(noRanges), ""},
			"no ranges, and connections that break once": {first(1, func(w http.ResponseWriter, r *http.Request) {
				noRanges(&shortBody{ResponseWriter: w, left: 300_000}, r)
				panic(http.ErrAbortHandler)
			}), ""},
			"no size": {func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.Header().Set("ETag", theETag)
					w.(http.Flusher).Flush()
					return
				}
				r.Header.Del("Range")
				edited(noLength)(w, r)
			}, ""},
			"no validator": {edited(noValidator), ""},
			"right digest": {func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Repr-Digest", digest)
				content(w, r)
			}, ""},
			"wrong digest": {func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:")
				content(w, r)
			}, "but the server says 0000"},
			"changes at once":                 {ranged(edited(otherETag)), ""},
			"changes in the middle, If-Range": {changing(), ""},
			"shrinks": {ranged(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Range", "bytes */10")
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			}), `416, Content-Range "bytes */10"`},
			"other range":       {ranged(edited(otherRange)), ""},
			"encodes":           {edited(encoded), ""},
			"not found":         {http.NotFound, "answers HEAD with 404"},
			"forbidden for GET": {ranged(answering(http.StatusForbidden, "")), "403"},
			"redirects in a loop": {func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/file?"+r.URL.RawQuery+"x", http.StatusFound)
			}, "redirects more than 10 times"},
			"redirects to http":         {moved("http://server/file", http.StatusFound), "allowed is https"},
			"redirects":                 {moved("/elsewhere/file", http.StatusTemporaryRedirect), ""},
			"redirects to another host": {moved("https://mirror/file", http.StatusFound), ""},
			"redirects to what expires": {expiring(), ""},
		}
	}
	for algorithm, s := range map[string]schedule.Scheduler{
		"adaptive": rescuers["adaptive"], "adaptive-energy": rescuers["adaptive-energy"], "HEAD first": asksByHead,
	} {
		for name, test := range faults() {
			t.Run(name+", "+algorithm, func(t *testing.T) {
				t.Parallel()
				want := test.want
				if name == "encodes ranges" && strings.HasPrefix(algorithm, "adaptive") {
					want = "" // Its first request is for the whole file, which is right.
				}
				summary, events := rescued(t, s, test.handler, want, nil)
				if strings.HasPrefix(name, "429 with") {
					for _, e := range of[*rundir.Request](events) {
						if e.ID == 3 {
							within(t, "time of the third request", seconds(e.T), 2, 2.3)
						}
					}
				}
				if test.want == "" {
					within(t, "download time", seconds(summary.Download), 0.3, 15*slack(algorithm))
				}
			})
		}
	}
}

// answering answers with an error. It may say after how many seconds to ask again.
func answering(code int, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		http.Error(w, "no", code)
	}
}

// moved redirects the first URL to another one, which has the content.
func moved(to string, code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "server" && r.URL.Path == "/file" {
			http.Redirect(w, r, to, code)
			return
		}
		content(w, r)
	}
}

// noHead refuses HEAD.
func noHead(get http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		get(w, r)
	}
}

// A server that leaves out the length of what it does not send may serve ranges all the same.
func TestHeadWithoutALength(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w = &editedHeader{w, noLength}
		}
		content(w, r)
	}
	summary, events := rescued(t, asksByHead, http.HandlerFunc(handler), "", nil)
	testkit.Holds(t, summary.Links["lte"].Bytes >= quantity.Bytes(len(file))/5, "bytes of lte", summary.Links)
	size := of[*rundir.Size](events)
	testkit.Holds(t, len(size) == 1 && size[0].Bytes == int64(len(file)), "size events", size)

	noRange := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", "bytes 0-0/*")
			w.WriteHeader(http.StatusPartialContent)
			return
		}
		handler(w, r)
	}
	rescued(t, asksByHead, http.HandlerFunc(noRange), "", nil)
}

// What a server says of the file to GET alone is no change of it.
func TestHeadWithoutAValidator(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w = &editedHeader{w, noValidator}
		}
		content(w, r)
	}
	for _, verified := range []bool{true, false} {
		rescued(t, asksByHead, http.HandlerFunc(handler), "", func(o *Options, _ *network) { o.Verified = verified })
	}
}

// An empty file has no first byte by which to ask for it where HEAD is refused.
func TestAnEmptyFileWithoutHead(t *testing.T) {
	serve(t, nil)
	for _, told := range []string{"bytes */0", ""} {
		handler := noHead(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
			if r.Header.Get("Range") == "" {
				w.Header().Set("Content-Length", "0")
				return
			}
			if told != "" {
				w.Header().Set("Content-Range", told)
			}
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		})
		for _, s := range askers {
			rescued(t, s, handler, "", nil)
		}
		_, _, err := try(t, handler, nil)
		testkit.OK(t, err)
	}
}

// changing serves another file after one part, and answers If-Range as a server should.
func changing() http.HandlerFunc {
	var count atomic.Int32
	return ranged(func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) == 1 {
			content(w, r)
			return
		}
		w.Header().Set("ETag", `"other"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
	})
}

// expiring redirects to URLs that are good for two requests.
func expiring() http.HandlerFunc {
	var mu sync.Mutex
	uses := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.URL.RawQuery
		switch {
		case key == "":
			uses["issued"]++
			http.Redirect(w, r, fmt.Sprintf("/file?%d", uses["issued"]), http.StatusFound)
		case uses[key] == 2:
			http.Error(w, "expired", http.StatusForbidden)
		default:
			uses[key]++
			mu.Unlock()
			content(w, r)
			mu.Lock()
		}
	}
}

// A link through which another file comes is not used any more, with all of its connections. The others go on.
func TestOneLinkServesAnotherFile(t *testing.T) {
	for _, most := range []int{1, 4} {
		summary, events := withSeveral(t, most, onLink("lte", edited(otherETag)), nil)
		testkit.Holds(t, summary.Links["lte"].Bytes == 0 && summary.Links["wifi"].Bytes == quantity.Bytes(len(file)), summary.Links)
		for _, e := range of[*rundir.End](events) {
			isChange := strings.Contains(e.Error, "the file changed") || most > 1 && e.Outcome == rundir.Cancelled
			testkit.Holds(t, e.Link != "lte" || isChange, "the end of lte's request", e)
		}
	}
}

// capError is permanent, as that of a data cap.
type capError struct{}

func (capError) Error() string   { return "the cap is reached" }
func (capError) Permanent() bool { return true }

type cappedSocket struct {
	link.Socket
	left int
}

func (s *cappedSocket) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, capError{}
	}
	n, err := s.Socket.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

func TestPermanentFailuresAreFinal(t *testing.T) {
	for links, want := range map[int]string{1: "", 2: "the cap is reached"} {
		var dials [2]int
		summary, _ := rescued(t, schedulers["adaptive"], http.HandlerFunc(content), want, func(o *Options, n *network) {
			for i, l := range []simLink{wifi, lte}[:links] {
				l.afterDial = func(s link.Socket) (link.Socket, error) { return &cappedSocket{s, 1_000_000}, nil }
				dial := n.dial(l)
				o.Links[i].Dial = func(ctx context.Context, address string) (link.Socket, error) {
					if dials[i]++; dials[i] > 1 {
						return nil, capError{}
					}
					return dial(ctx, address)
				}
			}
		})
		testkit.Holds(t, max(dials[0], dials[1]) <= 2 && summary.Links["wifi"].Bytes <= 1_000_000, "attempts to connect, and bytes", dials, summary.Links["wifi"].Bytes)
		within(t, "download time", seconds(summary.Download), 0.1, 2)
	}
}

func TestNobodyAnswersAtTheBeginning(t *testing.T) {
	summary, _ := rescued(t, schedulers["adaptive"], http.HandlerFunc(content), "link wifi: network is unreachable", func(o *Options, n *network) {
		n.wifi.set(0)
		n.lte.set(0)
	})
	within(t, "time of the failure", seconds(summary.Download), 0.5, 2)
	rescued(t, schedulers["adaptive"], http.HandlerFunc(content), "certificate", func(o *Options, _ *network) { o.TLS = &tls.Config{} })
}

// A middlebox that forgot the connections costs a second at most, also while the size is asked for.
func TestHalfOpenConnections(t *testing.T) {
	for _, at := range []time.Duration{35 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		for name, s := range rescuers {
			t.Run(fmt.Sprintf("%s, %v", name, at), func(t *testing.T) {
				summary, _ := rescued(t, s, http.HandlerFunc(content), "", func(_ *Options, n *network) {
					time.AfterFunc(at, func() { n.wifi.freeze(); n.lte.freeze() })
				})
				within(t, "download time", seconds(summary.Download), 0.6, 2.6*slack(name))
			})
		}
	}
}

// lose makes a download write to a lossySink.
func lose(o *Options) (armed *atomic.Bool) {
	armed = &atomic.Bool{}
	open := o.Output
	o.Output = func() (Sink, error) {
		sink, err := open()
		return &lossySink{sink, armed}, err
	}
	return armed
}

// lossySink fails to write once, when armed.
type lossySink struct {
	Sink
	armed *atomic.Bool
}

func (s *lossySink) WriteAt(p []byte, offset int64) (int, error) {
	if s.armed.CompareAndSwap(true, false) {
		return 0, syscall.EIO
	}
	return s.Sink.WriteAt(p, offset)
}

// onFailover is a Recorder that is told of failovers.
type onFailover func()

func (f onFailover) Record(_ time.Duration, e rundir.Event) {
	if _, ok := e.(*rundir.Failover); ok {
		f()
	}
}

// What a silent link's request has received is written when another link
// takes the rest over. Nobody else asks for those bytes.
func TestLastBytesOfATakenOverRequestCanNotBeWritten(t *testing.T) {
	for name, s := range rescuers {
		t.Run(name, func(t *testing.T) {
			summary, events := rescued(t, s, http.HandlerFunc(content), "input/output error", func(o *Options, n *network) {
				armed := lose(o)
				arm := sync.OnceFunc(func() { armed.Store(true) })
				o.Recorders = append(o.Recorders, onFailover(arm))
				time.AfterFunc(200*time.Millisecond, func() { n.wifi.set(0) })
			})
			testkit.Same(t, summary.Outcome, rundir.Failed, "the outcome is")
			var failed int
			for _, end := range of[*rundir.End](events) {
				if end.Outcome == rundir.Failed {
					failed++
				}
			}
			testkit.Same(t, failed, 1, "requests that are recorded as failed")
		})
	}
}

// Whatever links, connections and cuts there are, the file is whole, and no byte was received twice except those that
// arrived late on a cancelled request.
func TestRandomFaults(t *testing.T) {
	for seed := range racedetector.Part(70) {
		random := rand.New(rand.NewPCG(seed, 99))
		name := slices.Sorted(maps.Keys(rescuers))[random.IntN(len(rescuers))]
		t.Run(fmt.Sprintf("%d, %s", seed, name), func(t *testing.T) {
			t.Parallel()
			summary, events := rescued(t, rescuers[name], http.HandlerFunc(content), "", func(o *Options, n *network) {
				if o.Connections != nil {
					o.Connections.Most = 1 + random.IntN(6)
				}
				n.harm(random, []time.Duration{600 * time.Millisecond, 1500 * time.Millisecond}[random.IntN(2)])
			})
			within(t, "download time", seconds(summary.Download), 0.1, 10)
			testkit.Holds(t, len(of[*rundir.Request](events)) <= 1000, "links take work from each other without end")
		})
	}
}
