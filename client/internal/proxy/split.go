package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// firstRange is what the first request of a GET asks for, in bytes. It goes
// over one link on a connection that may be open already, tells size and
// validator, and is all there is to do for something small. Its time is about
// that in which all links connect for the rest.
const firstRange = 512 << 10

// splitter answers a GET over all links if that is of use, and any request
// over one link if not. It is an http.RoundTripper.
type splitter struct {
	routes  *routes
	engine  download.Options
	window  quantity.Bytes
	streams chan struct{}
	newLog  func() transfer.Recorder
}

func (s *splitter) RoundTrip(request *http.Request) (*http.Response, error) {
	client := request.Context().Value(clientKey{}).(*client)
	if own := client.pin(request, s.routes); own != nil {
		response, err := own.RoundTrip(request)
		if err != nil {
			client.unpin(request)
		}
		return response, err
	}
	wanted, ok := wantedRange(request)
	if !ok || !s.acquire() {
		return s.routes.RoundTrip(request)
	}
	response, err := s.split(request, wanted)
	if err != nil || !streams(response) {
		s.release()
	}
	return response, err
}

// acquire takes room for a stream, if there is any.
func (s *splitter) acquire() bool {
	select {
	case s.streams <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *splitter) release() { <-s.streams }

// streams reports whether a response keeps its room until its body is closed.
func streams(response *http.Response) bool {
	_, ok := response.Body.(*continuedBody)
	return ok
}

// split begins with one range.
func (s *splitter) split(request *http.Request, wanted wanted) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	server := ""
	first := request.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { server = got.Conn.RemoteAddr().String() },
	}))
	first.Header.Set("Range", transport.RangeHeader(wanted.first()))
	if !wanted.explicit {
		// It has no meaning without Range (RFC 9110 13.1.5), and must not get
		// one: the answer would be without what describes the file (15.3.7).
		first.Header.Del("If-Range")
	}
	// A range of an encoded body is of use to nobody who did not ask for it.
	first.Header.Set(acceptEncoding, "identity")
	response, route, err := s.routes.send(first)
	if err != nil {
		cancel()
		return nil, err
	}
	body := &firstBody{ReadCloser: response.Body, cancel: cancel}
	response.Body = body
	if transport.RefusesRanges(response.StatusCode) && !wanted.isFirst() {
		// The client did not ask for this range, which may be why: some serve none, and
		// the first byte of an empty file cannot be had.
		response.Body.Close()
		return s.plain(route, request)
	}
	if response.StatusCode != http.StatusPartialContent {
		s.resumable(body, request, response)
		return response, nil
	}
	resource, part, err := transport.Partial(response)
	if err != nil || part.Offset != wanted.offset || part.End() > wanted.first().End() {
		// Whatever this is, a plain request must do.
		response.Body.Close()
		return s.plain(route, request)
	}
	resource.Server = server
	whole := ranges.Range{Offset: wanted.offset, Length: min(wanted.end, resource.Size) - wanted.offset}
	exact, err := resource.Body(&http.Response{
		StatusCode: response.StatusCode, Header: response.Header, ContentLength: response.ContentLength, Body: body.ReadCloser,
	}, part)
	if err != nil {
		// So must it with an encoded part, or one of another length.
		response.Body.Close()
		return s.plain(route, request)
	}
	body.ReadCloser = exact
	if resource.HasValidator() {
		body.resumeBy(s, request, resource, part)
	}
	answer := wanted.answer(response, resource, part, whole)
	if rest := (ranges.Range{Offset: part.End(), Length: whole.End() - part.End()}); rest.Length > 0 {
		if !resource.HasValidator() {
			// Nothing would prove that several ranges are of one file.
			response.Body.Close()
			return s.plain(route, request)
		}
		answer.Body = &continuedBody{begin: body, rest: s.stream(request, resource, rest, s.release)}
	}
	return answer, nil
}

// plain sends a request as the client did. Who asked for no range gets none.
func (s *splitter) plain(route *route, request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	response, err := s.routes.over(route, request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	if transport.IsWhole(response) {
		response.StatusCode, response.Status = http.StatusOK, "200 OK"
		response.Header.Del("Content-Range")
	}
	body := &firstBody{ReadCloser: response.Body, cancel: cancel}
	s.resumable(body, request, response)
	response.Body = body
	return response, nil
}

// resumable lets all links bring the rest of an answer whose connection fails, if it
// says what it brings and how to tell that it is the same file.
func (s *splitter) resumable(body *firstBody, request *http.Request, response *http.Response) {
	resource, ok := transport.Complete(response)
	part := ranges.Range{Length: resource.Size}
	if response.StatusCode == http.StatusPartialContent {
		var err error
		resource, part, err = transport.Partial(response)
		ok = err == nil && response.ContentLength == int64(part.Length)
	}
	if ok && resource.HasValidator() {
		body.resumeBy(s, request, resource, part)
	}
}

// stream gets a part of a resource over all links, in order.
func (s *splitter) stream(request *http.Request, resource transport.Resource, part ranges.Range, done func()) *streamBody {
	window := reorder.NewWindow(s.window)
	o := s.engine
	o.URL, o.Header = request.URL, engineHeader(request.Header)
	o.Resource, o.Part = &resource, part
	o.Output = func() (download.Sink, error) { return window, nil }
	if s.newLog != nil {
		o.Recorders = []transfer.Recorder{s.newLog()}
	}
	ctx, cancel := context.WithCancel(request.Context())
	body := &streamBody{Window: window, cancel: cancel}
	body.running.Go(func() {
		defer done()
		summary, err := download.Run(ctx, o)
		s.routes.learn(summary)
		if err != nil && ctx.Err() == nil {
			o.Log.Error("a stream breaks off", "host", request.URL.Host, "error", err)
		}
	})
	return body
}

// streamBody is what the engine brings.
type streamBody struct {
	*reorder.Window
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Close ends the download.
func (b *streamBody) Close() error {
	b.cancel()
	b.running.Wait()
	return nil
}

const acceptEncoding = "Accept-Encoding"

// stallTime is how long the first body may bring nothing.
const stallTime = 5 * time.Second

// firstBody is the body of the first answer. If its link fails, the others
// bring the rest of it.
type firstBody struct {
	io.ReadCloser
	cancel context.CancelFunc

	// rest is what has not been read. Without resume it is not known.
	rest   ranges.Range
	stall  *time.Timer
	lowest quantity.Rate
	// waited is for how long it was read, and came what that brought, of late.
	waited  time.Duration
	came    quantity.Bytes
	resume  func(rest ranges.Range) io.ReadCloser
	resumed io.ReadCloser
}

// resumeBy has a splitter bring the part that the body is to bring, from where it fails.
func (b *firstBody) resumeBy(s *splitter, request *http.Request, resource transport.Resource, part ranges.Range) {
	b.rest, b.stall = part, time.AfterFunc(stallTime, b.cancel)
	b.lowest = s.engine.LowestRate
	b.resume = func(rest ranges.Range) io.ReadCloser { return s.stream(request, resource, rest, func() {}) }
}

func (b *firstBody) Read(p []byte) (int, error) {
	switch {
	case b.resumed != nil:
		return b.resumed.Read(p)
	case b.resume == nil:
		return b.ReadCloser.Read(p)
	}
	b.stall.Reset(stallTime)
	begun := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.stall.Stop()
	b.waited, b.came = b.waited+time.Since(begun), b.came+quantity.Bytes(n)
	if b.waited >= stallTime {
		if float64(b.came) < b.lowest.Over(b.waited) {
			b.cancel()
		}
		b.waited, b.came = 0, 0
	}
	b.rest.Offset += quantity.Bytes(n)
	b.rest.Length -= quantity.Bytes(n)
	switch {
	case err == nil || err == io.EOF:
	case b.rest.Length > 0:
		b.resumed = b.resume(b.rest)
		err = nil
	case !errors.Is(err, transport.ErrTooLong):
		err = io.EOF // all is here, only its end was not told
	}
	return n, err
}

func (b *firstBody) Close() error {
	b.cancel()
	err := b.ReadCloser.Close()
	if b.stall != nil {
		b.stall.Stop()
	}
	if b.resumed != nil {
		b.resumed.Close()
	}
	return err
}

// continuedBody is the first answer and then the rest.
type continuedBody struct {
	begin, rest io.ReadCloser
	begun       bool // all of begin is read
}

func (b *continuedBody) Read(p []byte) (int, error) {
	if b.begun {
		return b.rest.Read(p)
	}
	n, err := b.begin.Read(p)
	if err == io.EOF {
		b.begun, err = true, nil
	}
	return n, err
}

func (b *continuedBody) Close() error {
	return errors.Join(b.begin.Close(), b.rest.Close())
}

// engineHeader are the headers of a request that go with every range of it.
func engineHeader(header http.Header) http.Header {
	h := header.Clone()
	for name := range h {
		if name == "Range" || strings.HasPrefix(name, "If-") {
			delete(h, name)
		}
	}
	h.Set(acceptEncoding, "identity")
	return h
}

// wanted is the part of a resource that a client wants.
type wanted struct {
	// offset is where it begins; end is where it ends, at most.
	offset, end quantity.Bytes
	// explicit says that the client asked for a range.
	explicit bool
}

// unbounded is the end of what goes on to the end of the resource.
const unbounded = 1<<63 - 1

// wantedRange reads what a request asks for. It reports false if that cannot
// be put together from ranges: it is no GET, or asks for the last bytes or
// several ranges, or is to change the protocol, or holds only as it is.
func wantedRange(request *http.Request) (w wanted, ok bool) {
	if request.Method != http.MethodGet || request.Header.Get("Upgrade") != "" || hasBody(request) || !mayVary(request.Header) {
		return wanted{}, false
	}
	values := request.Header.Values("Range")
	if len(values) == 0 {
		return wanted{end: unbounded}, true
	}
	// RFC 9110 14.2: FIRST- or FIRST-LAST.
	text, ok := strings.CutPrefix(values[0], "bytes=")
	first, last, isSpan := strings.Cut(text, "-")
	if !ok || !isSpan || len(values) > 1 {
		return wanted{}, false
	}
	offset, err := strconv.ParseUint(first, 10, 62)
	if err != nil {
		return wanted{}, false
	}
	w = wanted{offset: quantity.Bytes(offset), end: unbounded, explicit: true}
	if last != "" {
		n, err := strconv.ParseUint(last, 10, 62)
		if err != nil || n < offset {
			return wanted{}, false
		}
		w.end = quantity.Bytes(n) + 1
	}
	return w, true
}

// first is the range to ask for first.
func (w wanted) first() ranges.Range {
	return ranges.Range{Offset: w.offset, Length: min(firstRange, w.end-w.offset)}
}

// isFirst reports whether the range to ask for first is what the client asked for.
func (w wanted) isFirst() bool { return w.explicit && w.first().End() == w.end }
