package download

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

// memory is a sink that learns the size at the end, if the server does not tell it.
type memory struct {
	bytes   []byte
	resized []quantity.Bytes
}

func (m *memory) Begin(transport.Resource, ranges.Range) ([]ranges.Range, error) {
	m.bytes = make([]byte, len(file))
	return nil, nil
}
func (m *memory) WriteAt(p []byte, offset int64) (int, error) {
	return copy(m.bytes[offset:], p), nil
}
func (m *memory) Resize(size quantity.Bytes) error { m.resized = append(m.resized, size); return nil }
func (m *memory) Restart(transport.Resource) error { return nil }
func (m *memory) Abort(bool) error                 { return nil }
func (m *memory) Commit() (sha256sum []byte, err error) {
	sum := sha256.Sum256(m.bytes)
	return sum[:], nil
}

// mostAtOnce is how many requests each connection may send at one moment. More of them would not end.
const mostAtOnce = 32

// inside looks into a download at each of its events.
type inside struct {
	*download
	t        *testing.T
	sessions map[*session]bool
	// states are those at the last look.
	states map[*connection]state
	// wasted is how many wasted bytes the events tell of.
	wasted quantity.Bytes
	// at is when the last requests were sent, and asked how many at that moment.
	at    time.Duration
	asked int
}

// Record notes the sessions and wasted bytes, and checks that the balance can pay for what the links of a race may receive.
func (i *inside) Record(_ time.Duration, e rundir.Event) {
	for _, s := range i.download.sessions {
		i.sessions[s] = true
	}
	switch e := e.(type) {
	case *rundir.End:
		i.wasted += quantity.Bytes(e.Wasted)
	case *rundir.Late:
		i.wasted += quantity.Bytes(e.Bytes)
	}
	if _, ok := e.(*rundir.Request); !ok {
		return
	}
	if i.asked++; i.at != i.now {
		i.at, i.asked = i.now, 1
	}
	if i.asked > mostAtOnce*len(i.connections) {
		panic(fmt.Sprintf("%d requests at one moment over %d connections", i.asked, len(i.connections)))
	}
	if i.race == nil || len(i.race.runners) < 2 {
		return
	}
	each := quantity.Bytes(raceLength)
	if i.resource.Size >= 0 {
		each = min(each, i.resource.Size)
	}
	n := quantity.Bytes(len(i.race.runners))
	testkit.Holds(i.t, i.balance.CanPay(n*each, i.openBytes()), "links race, which is more than the balance can pay", n)
}

// follow checks that the states have changed as they may.
func (i *inside) follow() {
	for _, c := range i.connections {
		was, known := i.states[c]
		is := c.state(i.now)
		testkit.Holds(i.t, !known || was.mayBecome(is), "a connection was and is", was, is)
		i.states[c] = is
	}
}

// check checks that each byte of a body counts once for its link, as used or as wasted. The texts of so many bytes
// that say why the server refuses something may count, too.
func (i *inside) check(summary map[string]rundir.LinkSummary, texts quantity.Bytes) {
	var counted, came, wasted quantity.Bytes
	for _, l := range summary {
		counted += l.Bytes + l.Wasted
		wasted += l.Wasted
	}
	testkit.Same(i.t, wasted, i.wasted, "wasted bytes, and those that the events tell of")
	before := map[*transport.Conn]quantity.Bytes{} // A connection may come back from the pool.
	for s := range i.sessions {
		if least, known := before[s.Conn]; !known || s.bodies < least {
			before[s.Conn] = s.bodies
		}
		testkit.Same(i.t, s.Unread()-s.unread, 0, "bytes that nothing read are not counted as wasted")
	}
	for conn, bodies := range before {
		came += conn.Bodies() - bodies
	}
	testkit.Holds(i.t, counted <= came && came <= counted+texts, "counted bytes, those that came, and of errors at most", counted, came, texts)
}

// errorTexts counts the bytes of answers that refuse something.
type errorTexts struct {
	http.ResponseWriter
	isError bool
	bytes   *atomic.Int64
}

func (e *errorTexts) WriteHeader(status int) {
	e.isError = status >= http.StatusMultipleChoices
	e.ResponseWriter.WriteHeader(status)
}

func (e *errorTexts) Write(p []byte) (int, error) {
	if e.isError {
		e.bytes.Add(int64(len(p)))
	}
	return e.ResponseWriter.Write(p)
}

func (e *errorTexts) Flush() { e.ResponseWriter.(http.Flusher).Flush() }

func (e *errorTexts) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return e.ResponseWriter.(http.Hijacker).Hijack()
}

// look downloads from handler, over HTTP/2 or HTTP/1.1 and any number of connections, into memory, and looks inside.
func look(t *testing.T, draw func(int) int, handler http.HandlerFunc, change func(*Options, *simNet)) (summary rundir.Summary, sink *memory, err error) {
	t.Helper()
	sink = &memory{}
	var texts atomic.Int64
	simulated(t, func(w http.ResponseWriter, r *http.Request) {
		handler(&errorTexts{ResponseWriter: w, bytes: &texts}, r)
	}, func(t *testing.T, n *simNet) {
		seen := &inside{
			t: t, sessions: map[*session]bool{}, states: map[*connection]state{},
		}
		o := usual(n, seen)
		o.Scheduler, o.Rescue, o.GiveUp, o.Connections = rescuers["adaptive"], true, 3*time.Minute, &transfer.Connections{Most: 1 + draw(4)}
		o.Output = func() (Sink, error) { return sink, nil }
		if draw(2) == 0 {
			o.Pool = newPool(forever)
			defer o.Pool.Close()
		}
		if change != nil {
			change(&o, n)
		}
		seen.download = withLinks(o)
		act := seen.do
		seen.do = func(a action) { seen.follow(); act(a) }
		_, err = seen.run(t.Context(), seen.download)
		summary.Links, summary.Download = map[string]rundir.LinkSummary{}, seen.end.Nanoseconds()
		seen.summarize(&summary)
		seen.check(summary.Links, quantity.Bytes(texts.Load()))
	})
	testkit.Holds(t, err != nil || bytes.Equal(sink.bytes, file), "the file differs from the server's")
	return summary, sink, err
}

// byChance has a test download files of any size from drawn servers, over any protocol and number of connections.
func byChance(t *testing.T, salt uint64, test func(t *testing.T, draw func(int) int)) {
	t.Helper()
	for seed := range servers("LINKLAB_CHANCE_SERVERS", racedetector.Part(40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			draw := drawing(seed, salt)
			serve(t, file[:1+draw([]int{1000, 200_000, len(file)}[draw(3)])])
			test(t, draw)
		})
	}
}

// eitherProtocol has a download use HTTP/2 or HTTP/1.1.
func eitherProtocol(draw func(int) int) func(*Options, *simNet) {
	return func(o *Options, _ *simNet) { over(o, draw(2)) }
}

// misbehave answers a request in one of eight ways, of which four bring no more than a part.
func misbehave(w http.ResponseWriter, r *http.Request, draw func(int) int) {
	hang := func() {
		isAwaited(r, 40*time.Second)
		panic(http.ErrAbortHandler)
	}
	part := func() { content(&shortBody{ResponseWriter: w, left: 1 + draw(1_000_000)}, r) }
	switch draw(8) {
	case 0:
		content(&slowBody{w}, r)
	case 1:
		w.Header().Set("Connection", "close")
		content(w, r)
	case 2:
		part()
		panic(http.ErrAbortHandler)
	case 3:
		hang()
	case 4:
		part()
		w.(http.Flusher).Flush()
		hang()
	case 5:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case 6:
		w.Header().Set("Connection", "close")
		content(&lateBody{ResponseWriter: w, late: time.Duration(draw(900)) * time.Millisecond}, r)
	case 7:
		content(&lateBody{ResponseWriter: w, late: time.Duration(draw(900)) * time.Millisecond}, r)
	}
}

// Whatever a server answers from request to request, the download ends: a part of its answers is right. Only that it
// costs too much may end it before.
func TestAnswersByChance(t *testing.T) {
	byChance(t, 61, func(t *testing.T, draw func(int) int) {
		right, unranged := 1+draw(20), draw(10)
		summary, _, err := look(t, draw, func(w http.ResponseWriter, r *http.Request) {
			if draw(20) < unranged {
				r.Header.Del("Range")
			}
			if draw(20) < right {
				content(w, r)
				return
			}
			misbehave(w, r, draw)
		}, eitherProtocol(draw))
		testkit.Holds(t, err == nil || strings.Contains(err.Error(), "again and again"), "seconds, the error, how many of 20 answers are right, and whole", seconds(summary.Download), err, right, unranged)
	})
}

// A server with ranges gives the whole file if three of four answers are right, however fast the links are: the answer
// to the first request may come whole before the client takes a part of it.
func TestMostAnswersAreRight(t *testing.T) {
	byChance(t, 65, func(t *testing.T, draw func(int) int) {
		summary, _, err := look(t, draw, func(w http.ResponseWriter, r *http.Request) {
			if draw(2) == 0 {
				content(w, r)
				return
			}
			misbehave(w, r, draw)
		}, func(o *Options, n *simNet) {
			over(o, draw(2))
			for i := range o.Links {
				o.Links[i].Dial = n.dial(simLink{
					rate: quantity.Rate(10e6 * (1 + draw(1000))), rtt: time.Duration(1+draw(50)*draw(50)) * 20 * time.Microsecond,
				})
			}
		})
		testkit.Holds(t, err == nil, "seconds, and the error", seconds(summary.Download), err)
	})
}

// A server that never answers some of its requests holds up none of the bytes that others bring.
func TestRequestsWithoutAnAnswerAreDuplicated(t *testing.T) {
	byChance(t, 62, func(t *testing.T, draw func(int) int) {
		hangs := 1 + draw(3)
		summary, _, err := look(t, draw, func(w http.ResponseWriter, r *http.Request) {
			if draw(20) < hangs {
				isAwaited(r, time.Hour)
				panic(http.ErrAbortHandler)
			}
			content(w, r)
		}, eitherProtocol(draw))
		testkit.Holds(t, err == nil && seconds(summary.Download) <= 60, "bytes, seconds, and how many of 20 requests had no answer", len(file), seconds(summary.Download), hangs, err)
	})
}

// A server without ranges sends the file to any number of links, over HTTP/1.1 or HTTP/2, with or
// without its length, and may break off at first. The file is whole, its size is told once it is known, each
// byte counts once, and who reads is warned if nothing proves the end.
func TestWholesByChance(t *testing.T) {
	byChance(t, 63, func(t *testing.T, draw func(int) int) {
		over1, isTold, saysGoodbye := draw(2) == 0, draw(2) == 0, draw(2) == 0
		var breaks atomic.Int32
		breaks.Store(int32(draw(3)))
		links := 1 + draw(4)
		if over1 && !isTold {
			breaks.Store(0) // The end of the connection is the end of the file.
		}
		isBroken := breaks.Load() > 0
		handler := func(w http.ResponseWriter, r *http.Request) {
			length := ""
			if isTold {
				length = fmt.Sprintf("Content-Length: %d\r\n", len(file))
				w.Header().Set("Content-Length", fmt.Sprint(len(file)))
			}
			body := file
			if r.Method == http.MethodGet && breaks.Add(-1) >= 0 {
				body = file[:draw(len(file))]
			}
			if !over1 {
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush() // Else the server tells the length of a short one.
				if _, err := w.Write(body); err == nil && len(body) < len(file) && r.Method == http.MethodGet {
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				}
				return
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n%s\r\n", length)
			if r.Method == http.MethodGet {
				_, _ = conn.Write(body)
			}
			if !saysGoodbye {
				conn = conn.(*tls.Conn).NetConn()
			}
			conn.Close()
		}
		summary, sink, err := look(t, draw, handler, func(o *Options, n *simNet) {
			if over1 {
				over(o, 1)
			}
			o.Links = nil
			for x := range links {
				way := simLink{rate: quantity.Rate(8e6 * (1 + draw(10))), rtt: time.Duration(5+draw(50)) * time.Millisecond}
				o.Links = append(o.Links, transfer.Link{Name: fmt.Sprint(x), Dial: n.dial(way)})
			}
		})
		testkit.Holds(t, err == nil && (summary.Warning != "") == (over1 && !isTold && !saysGoodbye), "the warning of a missing end", err, summary.Warning)
		var used quantity.Bytes
		for _, l := range summary.Links {
			used += l.Bytes
		}
		testkit.Holds(t, isBroken || used == quantity.Bytes(len(file)), "bytes that the links brought, and of the file", used, len(file))
		testkit.Holds(t, isTold == (len(sink.resized) == 0) && (isTold || sink.resized[0] == quantity.Bytes(len(file))), "sizes that the sink is told, and that of the file", sink.resized, len(file))
	})
}

// Of any number of links, one asks for the size, a redirect is followed as often as the user allows, and the events
// tell how long each TCP handshake took. Both engines work so.
func TestBeginningsByChance(t *testing.T) {
	byChance(t, 64, func(t *testing.T, draw func(int) int) {
		file = file[:min(len(file), 100_000)]
		hops, late, links := draw(5)*draw(2), time.Duration(draw(200))*time.Millisecond, 1+draw(4)
		most := hops + draw(3) - 1
		var heads atomic.Int32
		trips := map[string]time.Duration{}
		_, events, err := try(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				heads.Add(1)
			}
			time.Sleep(late)
			hop, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
			if hop < hops {
				http.Redirect(w, r, fmt.Sprintf("/%d", hop+1), http.StatusFound)
				return
			}
			content(w, r)
		}), func(o *Options, n *simNet) {
			o.URL.Path, o.Redirects, o.Rescue, o.GiveUp = "/0", most, draw(2) == 0, time.Minute
			if most <= 0 {
				o.Redirects = NoRedirects
			}
			o.Scheduler, o.Links = asksByHead, nil
			for x := range links {
				way := simLink{rate: 80e6, rtt: time.Duration(5+draw(150)) * time.Millisecond}
				o.Links = append(o.Links, transfer.Link{Name: fmt.Sprint(x), Dial: n.dial(way)})
				trips[fmt.Sprint(x)] = way.rtt
			}
		})
		testkit.Same(t, err == nil, hops <= max(0, most), "redirects, and how many are allowed", hops, most, err)
		testkit.Holds(t, hops != 0 || heads.Load() == 1, "HEADs by links", heads.Load(), links)
		for _, c := range of[*rundir.Connected](events) {
			testkit.Same(t, time.Duration(c.TCP), trips[c.Link], "time of the handshake")
		}
	})
}
