package download

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/transport"
)

// receiving sends a request for a range, or takes over that of an opening, and receives the answer. It is an action,
// which ends with the event received.
type receiving struct {
	d        *download
	c        *connection
	r        *request
	opened   *opening
	target   transport.Target
	resource transport.Resource
	// written is called when nothing more of the request is written to the sink.
	written func()
}

func (f *receiving) perform() {
	d := f.d
	ctx, cancel := context.WithCancel(transport.WithProof(d.ctx, f.r.proof))
	f.r.cancel = cancel
	if o := f.opened; o != nil {
		f.r.cancel = func() { cancel(); o.cancel() }
	}
	d.fetches.Add(1)
	f.written = sync.OnceFunc(d.fetches.Done)
	end := f.r.cancel
	d.launch(func() {
		err := f.receive(ctx)
		end()
		d.post(received{f.c, f.r, err})
		f.written() // The loop knows these bytes before a race writes others.
	})
}

// receive copies the body of the answer to the sink. Bytes count as arrived when they are
// read; the last ones when they are written.
func (f *receiving) receive(ctx context.Context) error {
	d, r := f.d, f.r
	body, err := f.body(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	unit := writeSize
	if d.window != nil {
		unit = 1
	}
	var memory *block.Block
	defer func() {
		if memory != nil {
			block.Put(memory)
		}
	}()
	filled, offset := 0, r.Offset
	for {
		if memory == nil {
			// With HTTP/2 this waits until bytes are there. So only few of many requests in
			// flight need memory at a time.
			_, _ = body.Read(nil)
			memory = block.Get()
		}
		room := memory[filled:]
		if r.isWhole {
			room = room[:min(len(room), f.hold(ctx))]
		}
		n, readErr := body.Read(room)
		e := &read{c: f.c, r: r, bytes: n}
		d.call(e)
		filled += e.kept
		if filled > 0 && (filled >= unit || e.last || readErr != nil) {
			if _, err := d.sink.WriteAt(memory[:filled], int64(offset)); err != nil {
				d.call(unwritten{r, quantity.Bytes(filled)})
				return sinkError{err}
			}
			offset += quantity.Bytes(filled)
			filled = 0
		}
		if filled == 0 {
			block.Put(memory)
			memory = nil
		}
		if e.kept > 0 {
			d.call(progress{f.c, r, quantity.Bytes(e.kept)})
		}
		if e.last {
			f.written() // A server may send the end of the stream late, or never.
		}
		switch {
		case readErr == io.EOF && !e.last:
			return io.ErrUnexpectedEOF
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			return readErr
		case e.isCut:
			return nil
		}
	}
}

// body returns the body of the answer.
func (f *receiving) body(ctx context.Context) (io.ReadCloser, error) {
	if f.opened != nil {
		return f.opened.result(ctx, f.resource)
	}
	return f.r.session.Get(ctx, f.target, f.resource, f.r.Range)
}

// hold waits until the engine may read more of the answer to the request for the whole file (holding). It returns how
// many bytes.
func (f *receiving) hold(ctx context.Context) int {
	for {
		e := &holding{c: f.c, r: f.r}
		f.d.call(e)
		if !e.isHeld {
			return e.bytes
		}
		timer := time.NewTimer(e.patience)
		select {
		case <-ctx.Done():
		case <-f.r.more:
		case <-timer.C:
			f.d.call(heldLong{f.c, f.r})
		}
		timer.Stop()
		if ctx.Err() != nil {
			return 1
		}
	}
}
