package storm

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/output"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/racedetector"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/upload"
)

const (
	// patience is --give-up, and longest the simulated time within which a download ends. A server
	// may bring something new until then, a little at a time.
	patience = time.Minute
	longest  = 24 * time.Hour
	// wait is how long the client of a gateway waits.
	wait = 10 * time.Minute
	// overhead is what a connection costs besides bodies, in bytes: TLS and headers.
	overhead = 2 << 10
	// enough is how many new bytes make a connection a part of the progress, unless all of a file is less.
	enough = 16 << 10
)

// traced in the environment prints all requests.
var traced = os.Getenv("LINKLAB_STORM_TRACE")

// What servers vary in. The words are those of the tests' names.
var (
	rangesOf     = []string{"ranges", "no ranges", "Accept-Ranges: none", "ranges at times", "206 from 0", "206 whole"}
	validatorsOf = []string{"ETag", "new ETags", "no validator", "date"}
	lengthsOf    = []string{"length", "chunked", "wrong length"}
	faultsOf     = []string{"cuts", "resets", "stalls", "503", "429", "403", "404", "500", "413", "507", "closes", "none"}
	waysOf       = []string{"get", "get, one each", "single", "to a pipe", "gateway", "put", "put, one each", "put, ranged"}
)

// odd is a server made at random.
type odd struct {
	protocol, ranges, validator, length, fault, way string
	size                                            int64
	// after is how many bytes of an answer arrive until it fails, and begins from which request
	// on answers fail.
	after  int64
	begins int
	// gone has an answer that is an error close the connection.
	gone bool

	// over is closed when the client has ended.
	over chan struct{}

	mu    sync.Mutex
	total int64 // All bytes of bodies.
	// refused is how many uploads were refused.
	asked, refused int
	sent           ranges.Set
	fresh          map[peer]quantity.Bytes
}

func newOdd(r *rand.Rand) *odd {
	one := func(of []string) string { return of[r.IntN(len(of))] }
	o := &odd{
		protocol: one([]string{"h2", "http/1.1"}), ranges: one(rangesOf), validator: one(validatorsOf), length: one(lengthsOf),
		fault: one(faultsOf), way: one(waysOf), size: 100_000 << r.IntN(5), gone: r.IntN(2) == 0,
		fresh: map[peer]quantity.Bytes{},
	}
	o.after = int64(float64(o.size) * r.Float64())
	if r.IntN(2) == 0 {
		o.after = int64(256) << r.IntN(10)
	}
	if r.IntN(2) == 0 {
		o.begins = r.IntN(8)
	}
	return o
}

func (o *odd) String() string {
	return fmt.Sprintf("%s/%s/%s/%s/%s/%s after %d of %d from %d on, gone %v", o.way, o.protocol, o.ranges, o.validator, o.length, o.fault, o.after, o.size, o.begins, o.gone)
}

// byHTTP3 makes a server of downloads speak HTTP/3 alone.
func (o *odd) byHTTP3() {
	if !strings.HasPrefix(o.way, "put") && o.way != "gateway" {
		o.protocol = http3.NextProtoH3
	}
}

// serve handles a connection.
func (o *odd) serve(e *end) {
	handles([]string{o.protocol}, func(w http.ResponseWriter, r *http.Request) { o.answer(e, w, r) })(e)
}

func (o *odd) answer(e peer, w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	asked := o.asked
	o.asked++
	o.mu.Unlock()
	if traced != "" {
		begun, sent := time.Now(), o.total
		defer func() {
			fmt.Println(asked, begun.Format("05.000"), time.Now().Format("05.000"), r.Proto, r.Method, r.Header.Get("Range"), w.Header(), o.total-sent)
		}()
	}
	fails := asked >= o.begins
	header := w.Header()
	isPut := r.Method == http.MethodPut
	if isPut && !o.takes(e, w, r, fails) {
		return
	}
	if code, err := strconv.Atoi(o.fault); err == nil && fails && (isPut || !strings.HasPrefix(o.way, "put")) {
		if o.gone {
			header.Set("Connection", "close")
		}
		if isPut {
			o.refused++
		}
		http.Error(w, "odd", code)
		return
	}
	if isPut {
		w.WriteHeader(http.StatusCreated)
		return
	}
	switch o.validator {
	case "ETag":
		header.Set("ETag", `"1"`)
	case "new ETags":
		header.Set("ETag", strconv.Quote(strconv.Itoa(asked)))
	case "date":
		header.Set("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
	}
	first, last := int64(0), o.size-1
	isRange := false
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); n > 0 && first < o.size {
		isRange = o.ranges == "ranges" || strings.HasPrefix(o.ranges, "206") || o.ranges == "ranges at times" && asked%3 != 0
		last = min(last, o.size-1)
	}
	if !isRange {
		first, last = 0, o.size-1
	}
	if o.ranges == "Accept-Ranges: none" {
		header.Set("Accept-Ranges", "none")
	}
	code := http.StatusOK
	if isRange {
		code = http.StatusPartialContent
		switch o.ranges {
		case "206 from 0":
			first, last = 0, last-first
		case "206 whole":
			first, last = 0, o.size-1
		}
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, o.size))
	}
	length := last - first + 1
	switch {
	case o.length == "length":
		header.Set("Content-Length", strconv.FormatInt(length, 10))
	case o.length == "wrong length" && fails:
		header.Set("Content-Length", strconv.FormatInt(length+1000, 10))
	}
	w.WriteHeader(code)
	http.NewResponseController(w).Flush()
	if r.Method == http.MethodHead {
		return
	}
	ends := last + 1
	if fails && o.fault != "none" && o.fault != "closes" {
		ends = min(ends, first+o.after)
	}
	for first < ends {
		piece := min(ends-first, 16<<10)
		time.Sleep(2 * time.Millisecond)
		if _, err := w.Write(make([]byte, piece)); err != nil {
			return
		}
		http.NewResponseController(w).Flush()
		o.mu.Lock()
		o.total += piece
		o.fresh[e] += o.sent.Add(ranges.Range{Offset: quantity.Bytes(first), Length: quantity.Bytes(piece)})
		if first += piece; first > last && length == o.size && o.fresh[e] > 0 {
			o.fresh[e] += enough
		}
		o.mu.Unlock()
	}
	switch {
	case !fails || o.fault == "none" || first > last && o.fault != "closes":
	case o.fault == "resets":
		time.Sleep(rtt)
		e.reset()
	case o.fault == "stalls":
		<-r.Context().Done()
	case o.fault == "closes":
		e.Close()
	default:
		panic(http.ErrAbortHandler)
	}
}

// takes reads what is sent, and reports whether to answer.
func (o *odd) takes(e peer, w http.ResponseWriter, r *http.Request, fails bool) bool {
	at, size := int64(0), o.size
	_, _ = fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d", &at, &size)
	stop := at + o.after
	for piece := make([]byte, 8<<10); !fails || at < stop || o.fault == "none"; {
		n, err := r.Body.Read(piece)
		o.mu.Lock()
		o.fresh[e] += o.sent.Add(ranges.Range{Offset: quantity.Bytes(at), Length: quantity.Bytes(n)})
		if err == io.EOF {
			o.fresh[e] += enough // A server that takes all of a PUT works.
		}
		o.mu.Unlock()
		at += int64(n)
		if err != nil {
			return err == io.EOF
		}
	}
	switch o.fault {
	case "cuts":
		panic(http.ErrAbortHandler)
	case "closes":
		e.Close()
	case "resets":
		e.reset()
	case "stalls":
		select {
		case <-r.Context().Done():
		case <-o.over: // net/http does not notice the end of a connection before that of a body.
		}
	default:
		return true
	}
	return false
}

// outcome is what a download has cost.
type outcome struct {
	received, most, seconds int64
	// told means that the server told the size in a way that can be used.
	ended, told bool
	err         error
}

// run downloads from the server.
func (o *odd) run(t *testing.T) (out outcome) {
	n := newNetwork(o.serve)
	n.boundless = o.protocol == "h2" && strings.HasPrefix(o.way, "put")
	o.over = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	algorithm, most := "adaptive", 16
	switch o.way {
	case "get, one each", "put, one each":
		most = 1
	case "single":
		algorithm, most = "single", 0
	}
	options := options(n, algorithm, true, most)
	options.GiveUp, options.LowestRate = patience, 200
	if o.protocol == http3.NextProtoH3 {
		n.listen(http3With(func(e *quicEnd, w http.ResponseWriter, r *http.Request) { o.answer(e, w, r) }), false)
		n.overHTTP3(&options, true)
	}
	if o.way == "to a pipe" {
		options.Output = func() (download.Sink, error) { return output.Open(ctx, output.Standard, io.Discard, nil) }
	}
	begun := time.Now()
	switch o.way {
	case "gateway":
		out.told = true
		ask(ctx, options) // A stalled answer is passed on as it is.
	case "put", "put, one each", "put, ranged":
		out.told = true
		put := toUpload(options, quantity.Bytes(o.size))
		put.Ranged = o.way == "put, ranged"
		_, out.err = upload.Run(ctx, put)
	default:
		var summary rundir.Summary
		summary, out.err = download.Run(ctx, options)
		out.told = summary.Size > 0
	}
	out.seconds = int64(time.Since(begun) / time.Second)
	out.ended = ctx.Err() == nil
	cancel()
	close(o.over)
	n.end()
	out.received = n.received.Load() + n.datagrams()
	if strings.HasPrefix(o.way, "put") {
		out.received = n.sent.Load()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	var idle []time.Time
	for i, at := range n.accepted {
		if o.fresh[n.ends[i]] < enough {
			idle = append(idle, at)
		}
	}
	for i, from := range idle {
		count, _ := slices.BinarySearchFunc(idle[i:], from.Add(time.Minute), time.Time.Compare)
		out.most = max(out.most, int64(count))
	}
	out.received -= int64(len(n.accepted)) * overhead
	return out
}

// A download ends, and costs little, from whatever server: at most three times the file and 1 MB, and
// at most as many connections in a minute as are allowed, but for those that bring something new.
// LINKLAB_STORM_SERVERS is how many servers there are, and LINKLAB_STORM_SEED where they begin.
func TestWhatServersMayCost(t *testing.T) {
	count, seed := 240, 1
	if racedetector.On {
		count = 24
	}
	if said, err := strconv.Atoi(os.Getenv("LINKLAB_STORM_SERVERS")); err == nil {
		count = said
	}
	if said, err := strconv.Atoi(os.Getenv("LINKLAB_STORM_SEED")); err == nil {
		seed = said
	}
	var mu sync.Mutex
	ratios, busiest, slowest := map[string]float64{}, map[string]int64{}, map[string]int64{}
	t.Run("servers", func(t *testing.T) {
		for i := range count {
			o := newOdd(rand.New(rand.NewPCG(uint64(seed+i), 0)))
			if i%4 == 3 {
				o.byHTTP3()
			}
			t.Run(strconv.Itoa(seed+i), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					out := o.run(t)
					limit := 3*o.size + 1e6
					if !out.told {
						limit = 3*max(o.size, 4<<20) + 1e6
					}
					if o.way == "gateway" {
						limit *= 2 // The first range of an answer and the rest are two downloads.
					}
					what := fmt.Sprintf("%v: %d bytes, %d connections in a minute, %d s: %v", o, out.received, out.most, out.seconds, out.err)
					switch {
					case !out.ended:
						t.Errorf("it goes on: %s", what)
					case out.received > limit:
						t.Errorf("it costs too much: %s", what)
					case o.refused > 1 && o.way != "put, ranged" && slices.Contains([]string{"403", "404", "413", "507"}, o.fault):
						t.Errorf("a refusal is not believed, %d times: %s", o.refused, what)
					case out.most > allowed:
						t.Errorf("too many connections: %s", what)
					default:
						t.Log(what)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, kind := range []string{o.way, o.fault, o.protocol, o.ranges} {
						ratios[kind] = max(ratios[kind], float64(out.received)/float64(limit))
						busiest[kind] = max(busiest[kind], out.most)
						slowest[kind] = max(slowest[kind], out.seconds)
					}
				})
			})
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(ratios)) {
		t.Logf("%-20s at most %.2f of the bytes allowed, %d connections in a minute, %d s", kind, ratios[kind], busiest[kind], slowest[kind])
	}
}
