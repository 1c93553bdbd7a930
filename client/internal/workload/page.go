package workload

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/ranges"
)

// Page loads a page: first its document, then all objects in it, over several connections at a time.
type Page struct {
	// Objects are the parts of the file that make up the page, in the order of the requests.
	Objects     []ranges.Range
	Connections int
}

func (Page) Name() string { return "page" }

func (w Page) connections() int { return w.Connections }

func (w Page) run(ctx context.Context, s *session) (Figures, error) {
	p := &page{session: s, objects: w.Objects, bodies: make([]bytes.Buffer, len(w.Objects))}
	if err := p.load(ctx, 0); err != nil {
		return nil, err
	}
	document := s.now()
	if err := p.loadRest(ctx, w.Connections); err != nil {
		return nil, err
	}
	loaded := s.now()
	for i := range p.bodies {
		if err := s.add(p.bodies[i].Bytes()); err != nil {
			return nil, err
		}
	}
	return Figures{
		"page_load_s": loaded.Seconds(),
		"document_s":  document.Seconds(),
		"object_s":    percentile(p.times, 50).Seconds(),
	}, nil
}

// page is a running Page.
type page struct {
	*session
	objects []ranges.Range
	bodies  []bytes.Buffer

	mu    sync.Mutex
	times []time.Duration
}

func (p *page) load(ctx context.Context, i int) error {
	took, err := p.fetch(ctx, message{number: i + 1, part: p.objects[i]}, func(piece []byte) error {
		_, err := p.bodies[i].Write(piece)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times = append(p.times, took)
	return err
}

// loadRest loads the objects of the document. The first failure ends the others.
func (p *page) loadRest(parent context.Context, connections int) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	next := make(chan int, len(p.objects))
	for i := 1; i < len(p.objects); i++ {
		next <- i
	}
	close(next)
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			for i := range next {
				if err := p.load(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
