// Package workload imitates programs in front of a client, such as a player, a browser or a messenger,
// and measures what their users see. Its requests use one device, Multipath TCP, or multilink's proxy.
// The imitated program is the same.
package workload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/printable"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/rundir"
	"github.com/linklab/linklab/client/internal/transport"
)

// Workload is the pattern of a program's requests.
type Workload interface {
	// Name returns the name in the run directory.
	Name() string
	// connections returns the largest number of connections.
	connections() int
	// run makes the requests and returns the workload's results.
	run(ctx context.Context, s *session) (Figures, error)
}

// Figures are the results of a workload by name. The names end in units.
type Figures map[string]float64

// Options configures a run.
type Options struct {
	URL *url.URL
	// Size is the size of the file at the URL, as a manifest or a page would say.
	Size  quantity.Bytes
	Route Route
	// Checksum is the file's SHA-256, nil if unknown.
	Checksum []byte
	// GiveUp limits how long nothing may arrive during a request.
	GiveUp time.Duration
	// Dir records the events; it may be nil.
	Dir *rundir.Dir
}

// Run runs a workload and returns its result. A failed workload has a result without figures.
func Run(ctx context.Context, w Workload, o Options) (rundir.Workload, error) {
	s := &session{
		Options: o,
		server:  newServer(o.URL, o.Route, w.connections()),
		start:   time.Now(),
		digest:  sha256.New(),
		whole:   transport.Resource{Size: o.Size},
	}
	defer s.server.close()
	figures, err := w.run(ctx, s)
	if err == nil {
		err = s.verify()
	}
	result := rundir.Workload{
		Go: runtime.Version(), Workload: w.Name(), URL: o.URL.Redacted(),
		Outcome: rundir.Complete, StartedAt: s.start.UnixNano(),
		Duration: s.now().Nanoseconds(), Bytes: s.received, Figures: figures,
	}
	if err != nil {
		err = printable.Error(err)
		result.Outcome, result.Error, result.Figures = rundir.Failed, err.Error(), nil
		if ctx.Err() != nil {
			result.Outcome = rundir.Interrupted
		}
	}
	return result, err
}

// session is a run in progress. Several goroutines may fetch at a time.
type session struct {
	Options
	server *server
	start  time.Time

	mu       sync.Mutex
	received quantity.Bytes
	digest   hash.Hash
	// whole is the file as the first answer describes it.
	whole     transport.Resource
	described bool
}

// now returns the time since the start.
func (s *session) now() time.Duration { return time.Since(s.start) }

// record records an event.
func (s *session) record(t time.Duration, e rundir.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Dir != nil {
		s.Dir.Record(t, e)
	}
}

// add takes bytes in the order of the file.
func (s *session) add(piece []byte) error {
	_, err := s.digest.Write(piece)
	return err
}

// verify compares the bytes with the checksum, if known.
func (s *session) verify() error {
	if got := s.digest.Sum(nil); s.Checksum != nil && string(got) != string(s.Checksum) {
		return fmt.Errorf("what arrived has the SHA-256 %x instead of %x", got, s.Checksum)
	}
	return nil
}

// message is a request of a workload: for a part of the file, with a body of so many bytes.
type message struct {
	number int
	part   ranges.Range
	body   quantity.Bytes
}

// fetch sends a message and calls arrived with every piece of the answer. It returns how long that
// took.
func (s *session) fetch(ctx context.Context, m message, arrived func(piece []byte) error) (time.Duration, error) {
	begun := s.now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.GiveUp, func() { cancel(fmt.Errorf("nothing arrived for %s", s.GiveUp)) })
	defer silence.Stop()
	got, err := s.exchange(ctx, m, func(piece []byte) error {
		silence.Stop()
		defer silence.Reset(s.GiveUp)
		return arrived(piece)
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return 0, fmt.Errorf("%d of the %d bytes from %d on arrived: %w", int64(got), int64(m.part.Length), int64(m.part.Offset), err)
	}
	took := s.now() - begun
	s.record(begun+took, &rundir.Exchange{Number: m.number, Bytes: int64(got), Took: took.Nanoseconds()})
	return took, nil
}

func (s *session) exchange(ctx context.Context, m message, arrived func([]byte) error) (got quantity.Bytes, err error) {
	answer, err := s.server.ask(ctx, m)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	resource, err := s.describe(answer)
	if err != nil {
		return 0, err
	}
	body, err := resource.Body(answer, m.part)
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, readSize)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			got += quantity.Bytes(n)
			s.mu.Lock()
			s.received += quantity.Bytes(n)
			s.mu.Unlock()
			if err := arrived(buffer[:n]); err != nil {
				return got, err
			}
		}
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

// describe returns the resource to which an answer must belong: that of the first answer.
func (s *session) describe(answer *http.Response) (transport.Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.described && answer.StatusCode == http.StatusPartialContent {
		resource, _, err := transport.Partial(answer)
		if err != nil {
			return resource, err
		}
		s.whole.ETag, s.whole.LastModified, s.described = resource.ETag, resource.LastModified, true
	}
	return s.whole, nil
}

// sleep waits until that time after the start, or until the context ends.
func (s *session) sleep(ctx context.Context, until time.Duration) error {
	timer := time.NewTimer(until - s.now())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
