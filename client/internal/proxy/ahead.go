package proxy

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/linklab/linklab/client/internal/download"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// longAnswer is how long the answer to the first range may take until the next range is requested, of
// aheadLength bytes. A server that needs seconds for each answer would need them twice.
const (
	longAnswer  = 500 * time.Millisecond
	aheadLength = 16 << 20
)

// ahead is a request for the range after the first one.
type ahead struct {
	part   ranges.Range
	cancel context.CancelFunc
	timer  *time.Timer
	// answered is closed when the rest is known.
	answered chan struct{}
	response *http.Response
	err      error
}

// askAhead requests the range after the first one unless drop is called soon. A page that a server makes
// slowly is requested once.
func (s *splitter) askAhead(ctx context.Context, first *http.Request, wanted wanted) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	from := wanted.first().End()
	a := &ahead{part: ranges.Range{Offset: from, Length: min(aheadLength, wanted.end-from)}, cancel: cancel, answered: make(chan struct{})}
	if download.NamesPage(first.URL) {
		a.part.Length = 0
	}
	next := first.Clone(ctx)
	next.Header.Set("Range", transport.RangeHeader(a.part))
	a.timer = time.AfterFunc(longAnswer, func() {
		defer close(a.answered)
		if a.part.Length > 0 {
			a.response, _, a.err = s.routes.send(next)
		}
	})
	return a
}

// isSent reports whether the request was sent. If not, it is not sent later.
func (a *ahead) isSent() bool { return a.part.Length > 0 && !a.timer.Stop() }

func (a *ahead) drop() {
	a.timer.Stop()
	a.cancel()
}

// body returns the part of the resource that was requested. Other links deliver it if the answer does not.
func (a *ahead) body(s *splitter, request *http.Request, resource transport.Resource, part ranges.Range) io.ReadCloser {
	return &lateBody{cancel: a.cancel, open: func() io.ReadCloser {
		<-a.answered
		if a.err == nil {
			if exact, err := resource.Body(a.response, part); err == nil {
				body := &firstBody{ReadCloser: exact, cancel: a.cancel}
				body.resumeBy(s, request, resource, part)
				return body
			}
			a.response.Body.Close()
		}
		return s.stream(request, resource, ranges.Range{}, part, true, func() {})
	}}
}

// lateBody is a body that is opened by the first Read.
type lateBody struct {
	open   func() io.ReadCloser
	opened io.ReadCloser
	cancel context.CancelFunc
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.opened == nil {
		b.opened = b.open()
	}
	return b.opened.Read(p)
}

func (b *lateBody) Close() error {
	b.cancel()
	if b.opened == nil {
		return nil
	}
	return b.opened.Close()
}
