package upload

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

const (
	// temporaryPrefix begins the names of temporary files.
	temporaryPrefix = ".multilink-"
	// leastRanged is the least size of a file for which the client tries ranges.
	leastRanged quantity.Bytes = 64 << 10
	// leastHold is how long two ranges of a trial wait for each other at least. They wait for
	// twice the time of an answer.
	leastHold = 50 * time.Millisecond
	// removePatience is how long removing temporary files may take in all.
	removePatience = 10 * time.Second
)

// destination is where the file goes, and how.
type destination struct {
	target *url.URL
	// ranged says that the server takes ranges.
	ranged bool
	// temporary are the temporary files beside the target that may exist. The one that gets the
	// whole file becomes the target by MOVE. There are none if the server has no MOVE.
	temporary []*url.URL
	// taken is how many of them requests for the whole file use.
	taken int
}

// isBeside reports whether the file goes to a temporary file first.
func (d *destination) isBeside() bool { return len(d.temporary) > 0 }

// next is the URL of a request. If several links send the whole file in turn, each gets a name of its
// own: the server may still lock or write the file of the first one.
func (d *destination) next(whole bool) *url.URL {
	switch {
	case !d.isBeside():
		return d.target
	case !whole:
		return d.temporary[0]
	case d.taken == len(d.temporary):
		d.temporary = append(d.temporary, sibling(d.target))
	}
	d.taken++
	return d.temporary[d.taken-1]
}

// sibling is the URL of a temporary file beside the target.
func sibling(target *url.URL) *url.URL {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // It never fails.
	path := target.EscapedPath()
	beside := *target
	beside.RawPath = path[:strings.LastIndex(path, "/")+1] + temporaryPrefix + hex.EncodeToString(random)
	beside.Path, _ = url.PathUnescape(beside.RawPath) // The URL's parser has checked the escapes.
	return &beside
}

// choose finds out where the file can go. It tries ranges and moves on temporary files beside the
// target, if the server has WebDAV. RFC 9110 14.5 allows a PUT of a range only if the server is known
// to support it: other servers take the range for the whole file.
func (a *asker) choose(ctx context.Context, target *url.URL) (destination, error) {
	plain := destination{target: target}
	if path := target.EscapedPath(); path == "" || strings.HasSuffix(path, "/") || target.RawQuery != "" {
		return plain, nil // The URL names no file in a collection.
	}
	answer, err := a.ask(ctx, answerPatience, transport.Question{Method: http.MethodOptions, Target: transport.Target{URL: target}})
	switch {
	case errors.Is(err, errUnanswered):
		return plain, nil
	case err != nil || !answer.IsSuccess() || answer.Header.Get("DAV") == "":
		return plain, err
	}
	first, second := sibling(target), sibling(target)
	ranged, moves := false, false
	asked := time.Now()
	if a.keeps(ctx, first, trialBefore) {
		ranged = a.upload.Size >= leastRanged && a.takesRanges(ctx, first, max(leastHold, 2*time.Since(asked)))
		moves = a.keeps(ctx, second, trialWhole) && a.moves(ctx, second, first)
	}
	if ctx.Err() != nil || !moves {
		a.remove(ctx, first, second)
		return plain, context.Cause(ctx)
	}
	return destination{target: target, ranged: ranged, temporary: []*url.URL{first}}, nil
}

// These are the contents that a trial writes: at first, then by ranges, and last by a move. They differ
// in both halves.
var (
	trialBefore = []byte("before: multilink's trial.")
	trialRanges = []byte("ranges: a trial of PUT ....")
	trialWhole  = []byte("whole: it's a trial of MOVE")
)

// keeps reports whether the server takes a short file.
func (a *asker) keeps(ctx context.Context, at *url.URL, content []byte) bool {
	taken := false
	err := a.do(ctx, answerPatience, func(ctx context.Context, conn httpConn) error {
		answer, err := conn.Exchange(ctx, a.upload.as(transport.Question{
			Method: http.MethodPut, Target: transport.Target{URL: at},
			Body: bytes.NewReader(content), Size: quantity.Bytes(len(content)),
		}))
		taken = answer.IsSuccess()
		return err
	})
	return err == nil && taken
}

// takesRanges tries whether the server writes two ranges into a file that is there, and
// keeps both when they come at the same time.
func (a *asker) takesRanges(ctx context.Context, at *url.URL, pause time.Duration) bool {
	size := quantity.Bytes(len(trialRanges))
	parts := []ranges.Range{{Offset: size / 2, Length: size - size/2}, {Length: size / 2}}
	codes := make([]int, len(parts))
	err := a.do(ctx, answerPatience, func(ctx context.Context, conn httpConn) error {
		release := make(chan struct{})
		failures := make([]error, len(parts))
		var begun, ended sync.WaitGroup
		for i, part := range parts {
			content := trialRanges[part.Offset:part.End()]
			body := &heldBody{Reader: bytes.NewReader(content), begun: sync.OnceFunc(begun.Done), release: release}
			begun.Add(1)
			ended.Go(func() {
				defer body.begun() // The request may fail before.
				codes[i], _, failures[i] = conn.Put(ctx, a.upload.target(at), body, part, size, false)
			})
		}
		begun.Wait()
		_ = sleep(ctx, pause) // The server begins both meanwhile.
		close(release)
		ended.Wait()
		return errors.Join(failures...)
	})
	isTaken := func(code int) bool { return code >= 200 && code < 300 }
	return err == nil && isTaken(codes[0]) && isTaken(codes[1]) && a.has(ctx, at, trialRanges)
}

// heldBody hands out its first byte, and the rest when it is released.
type heldBody struct {
	io.Reader
	begun   func()
	release <-chan struct{}
	started bool
}

func (b *heldBody) Read(p []byte) (int, error) {
	if !b.started {
		b.started = true
		b.begun()
		return b.Reader.Read(p[:1])
	}
	<-b.release
	return b.Reader.Read(p)
}

// moves tries whether the server moves a file over another one.
func (a *asker) moves(ctx context.Context, from, to *url.URL) bool {
	answer, err := a.ask(ctx, answerPatience, moving(from, to))
	return err == nil && answer.IsSuccess() && answer.Code != http.StatusMultiStatus && a.has(ctx, to, trialWhole)
}

// moving is a request to move a file (RFC 4918 9.9). Its destination is a path: behind a proxy a server
// knows neither its own scheme nor its host.
func moving(from, to *url.URL) transport.Question {
	return transport.Question{
		Method: "MOVE", Target: transport.Target{URL: from},
		Fields: map[string]string{"Destination": to.EscapedPath(), "Overwrite": "T"},
	}
}

// has reports whether the server has that file.
func (a *asker) has(ctx context.Context, at *url.URL, content []byte) bool {
	answer, err := a.ask(ctx, answerPatience, transport.Question{Method: http.MethodGet, Target: transport.Target{URL: at}})
	return err == nil && answer.Code == http.StatusOK && bytes.Equal(answer.Body, content)
}

// replace makes a temporary file the target, and verifies the target.
func (a *asker) replace(ctx context.Context, from *url.URL) error {
	u := a.upload
	answer, err := a.ask(ctx, movePatience, moving(from, u.URL))
	// An attempt whose answer was lost may have moved it.
	isMoved := answer.IsSuccess() && answer.Code != http.StatusMultiStatus || answer.Code == http.StatusNotFound && a.unsure
	switch {
	case err != nil:
		return fmt.Errorf("the file is sent, but not moved to its name: %w", err)
	case !isMoved:
		return fmt.Errorf("the file is sent, but the server does not move it to its name: it answers %s", said(answer))
	}
	u.to.temporary = slices.DeleteFunc(u.to.temporary, func(one *url.URL) bool { return one == from })
	if u.Verify {
		return a.verify(ctx, u.URL)
	}
	return nil
}

// remove deletes temporary files, also when the upload was interrupted.
func (a *asker) remove(ctx context.Context, files ...*url.URL) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
	defer cancel()
	for _, file := range files {
		answer, err := a.ask(ctx, answerPatience, transport.Question{Method: http.MethodDelete, Target: transport.Target{URL: file}})
		gone := answer.IsSuccess() || answer.Code == http.StatusNotFound || answer.Code == http.StatusGone
		if err != nil || !gone {
			a.upload.note(fmt.Sprintf("a temporary file may be left on the server: %s", file.Redacted()))
		}
	}
}
