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
	"github.com/linklab/linklab/client/internal/link"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/transfer"
	"github.com/linklab/linklab/client/internal/transport"
)

// firstRange is the size of the first range of a GET, in bytes. One link requests it, perhaps on
// an open connection. It tells size and validator, and is enough for a small file. It takes
// about as long as all links need to connect for the rest.
const firstRange = 512 << 10

// splitter answers a GET over all links if that helps, and any other request over one link. It is
// an http.RoundTripper.
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

// acquire reserves a stream. It returns false if there are too many.
func (s *splitter) acquire() bool {
	select {
	case s.streams <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *splitter) release() { <-s.streams }

// streams reports whether a response keeps its stream until its body is closed.
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
		// If-Range has no meaning without Range (RFC 9110 13.1.5), and must not get one: the
		// answer would omit the description of the file (15.3.7).
		first.Header.Del("If-Range")
	}
	// Other clients cannot use a range of an encoded body.
	first.Header.Set(acceptEncoding, "identity")
	ahead := s.askAhead(request.Context(), first, wanted)
	used := false
	defer func() {
		if !used {
			ahead.drop()
		}
	}()
	response, route, err := s.routes.send(first)
	if err != nil {
		cancel()
		return nil, err
	}
	body := &firstBody{ReadCloser: response.Body, cancel: cancel}
	response.Body = body
	if transport.RefusesRanges(response.StatusCode) && !wanted.isFirst() {
		// The range may be the reason, and the client did not ask for it: some servers serve none,
		// and an empty file has no first byte.
		response.Body.Close()
		return s.plain(route, request)
	}
	if response.StatusCode != http.StatusPartialContent {
		s.resumable(body, request, response)
		return response, nil
	}
	resource, part, err := transport.Partial(response)
	if err != nil || part.Offset != wanted.offset || part.End() > wanted.first().End() {
		// This answer cannot be used, so send a plain request.
		response.Body.Close()
		return s.plain(route, request)
	}
	resource.Server = server
	whole := ranges.Range{Offset: wanted.offset, Length: min(wanted.end, resource.Size) - wanted.offset}
	exact, err := resource.Body(&http.Response{
		StatusCode: response.StatusCode, Header: response.Header, ContentLength: response.ContentLength, Body: body.ReadCloser,
	}, part)
	if err != nil {
		// The part is encoded or has another length, so send a plain request.
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
			// Nothing would prove that several ranges belong to one file.
			response.Body.Close()
			return s.plain(route, request)
		}
		if used = part.End() == ahead.part.Offset && ahead.isSent(); used {
			next := ranges.Range{Offset: rest.Offset, Length: min(ahead.part.Length, rest.Length)}
			rest.Offset, rest.Length = next.End(), rest.Length-next.Length
			body := &continuedBody{begin: body, rest: ahead.body(s, request, resource, next)}
			if rest.Length == 0 {
				answer.Body = struct{ io.ReadCloser }{body} // It keeps no stream.
				return answer, nil
			}
			answer.Body = &continuedBody{begin: body, rest: s.stream(request, resource, until(part, rest), rest, true, s.release)}
			return answer, nil
		}
		answer.Body = &continuedBody{begin: body, rest: s.stream(request, resource, part, rest, false, s.release)}
	}
	return answer, nil
}

// plain sends a request as the client did, without a range that it did not ask for.
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

// resumable lets all links deliver the rest of an answer whose connection fails. The answer must
// tell which bytes it brings, and have a validator.
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

// until returns the bytes from a part's first one until a later part.
func until(part, later ranges.Range) ranges.Range {
	return ranges.Range{Offset: part.Offset, Length: later.Offset - part.Offset}
}

// stream downloads a part of a resource over all links, in order. The range before is there. isSlowToAnswer
// is true if the server needs long for each answer.
func (s *splitter) stream(request *http.Request, resource transport.Resource, before, part ranges.Range, isSlowToAnswer bool, done func()) *streamBody {
	window := reorder.NewWindow(s.window)
	o := s.engine
	o.URL, o.Header = request.URL, engineHeader(request.Header)
	o.Resource, o.Part, o.IsSlowToAnswer = &resource, part, isSlowToAnswer
	o.Balance = new(transfer.Balance)
	o.Balance.Has(before)
	o.Balance.Closed(before.Length)
	o.Output = func() (download.Sink, error) { return window, nil }
	if s.newLog != nil {
		o.Recorders = []transfer.Recorder{s.newLog()}
	}
	ctx, cancel := context.WithCancel(link.WhileWanted(request.Context()))
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

// streamBody reads what the engine delivers.
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

// stallTime is how long the first body may deliver nothing.
const stallTime = 5 * time.Second

// firstBody is the body of the first answer. If its link fails, the other links deliver the rest.
type firstBody struct {
	io.ReadCloser
	cancel context.CancelFunc

	// rest is the unread range. It is unknown without resume.
	rest   ranges.Range
	stall  *time.Timer
	lowest quantity.Rate
	// waited is the recent time spent in Read. came counts the bytes in that time.
	waited  time.Duration
	came    quantity.Bytes
	resume  func(rest ranges.Range) io.ReadCloser
	resumed io.ReadCloser
}

// resumeBy lets a splitter deliver the rest of the part if the body fails.
func (b *firstBody) resumeBy(s *splitter, request *http.Request, resource transport.Resource, part ranges.Range) {
	b.rest, b.stall = part, time.AfterFunc(stallTime, b.cancel)
	b.lowest = s.engine.LowestRate
	b.resume = func(rest ranges.Range) io.ReadCloser {
		return s.stream(request, resource, until(part, rest), rest, false, func() {})
	}
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
		err = io.EOF // All bytes are here. Only the end was not announced.
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

// continuedBody is the first answer followed by the rest.
type continuedBody struct {
	begin, rest io.ReadCloser
	begun       bool // All of begin was read.
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

// engineHeader returns the fields of a request that every range request carries.
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
	// offset is its first byte. end is the upper limit of its end.
	offset, end quantity.Bytes
	// explicit is true if the client asked for a range.
	explicit bool
}

// unbounded is the end of a range up to the end of the resource.
const unbounded = 1<<63 - 1

// wantedRange returns the part that a request asks for. It returns false if several ranges cannot
// make up the answer: the request is no GET, asks for the last bytes or for several ranges,
// changes the protocol, or may not be varied.
func wantedRange(request *http.Request) (w wanted, ok bool) {
	if request.Method != http.MethodGet || request.Header.Get("Upgrade") != "" || hasBody(request) || !mayVary(request.Header) {
		return wanted{}, false
	}
	values := request.Header.Values("Range")
	if len(values) == 0 {
		return wanted{end: unbounded}, true
	}
	// The form is FIRST- or FIRST-LAST (RFC 9110 14.2).
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

// first returns the range of the first request.
func (w wanted) first() ranges.Range {
	return ranges.Range{Offset: w.offset, Length: min(firstRange, w.end-w.offset)}
}

// isFirst reports whether the client asked for exactly the range of the first request.
func (w wanted) isFirst() bool { return w.explicit && w.first().End() == w.end }
