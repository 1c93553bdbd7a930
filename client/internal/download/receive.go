package download

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// receiving sends a request, or takes over that of an opening, and receives the answer: a range, or the whole resource
// in a race. It is an action, which ends with the event received.
type receiving struct {
	caller
	c        *connection
	r        *request
	opened   *opening
	target   transport.Target
	resource transport.Resource
	// written is called when nothing more of a range is written to the sink.
	written func()
}

func (f *receiving) perform() {
	ctx, end := context.WithCancel(transport.WithProof(f.d.ctx, f.r.proof))
	f.r.cancel = end
	if o := f.opened; o != nil {
		f.r.cancel = func() { end(); o.cancel() }
	}
	cancel := f.r.cancel
	f.written = func() {}
	if f.r.race == nil {
		f.d.fetches.Add(1)
		f.written = sync.OnceFunc(f.d.fetches.Done)
	}
	f.d.launch(func() {
		e := received{c: f.c, r: f.r}
		e.unwritten, e.err = f.receive(ctx)
		e.isCanceled = ctx.Err() != nil
		cancel()
		f.d.post(e)
		f.written() // The loop knows these bytes before a race writes others.
	})
}

// receive copies the body of the answer to the sink. It returns how many bytes could not be written.
func (f *receiving) receive(ctx context.Context) (unwritten quantity.Bytes, err error) {
	if f.r.race != nil {
		return 0, f.receiveWhole(ctx)
	}
	body, err := f.body(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return f.d.copyBody(body, f.r, rangeOf{f, ctx})
}

// body returns the body of the answer to a request for a range.
func (f *receiving) body(ctx context.Context) (io.ReadCloser, error) {
	if f.opened != nil {
		return f.opened.result(ctx, f.resource)
	}
	return f.r.session.Get(ctx, f.target, f.resource, f.r.Range)
}

// counting counts the bytes of a request for an engine.
type counting interface {
	// room is how many bytes may be read now. It waits until some may.
	room() int
	// read counts bytes that were read.
	read(bytes int) arrival
	// progress counts wanted bytes that arrived.
	progress(bytes int)
	// hasAll is called when all wanted bytes have been written, before the answer ends.
	hasAll()
}

// copyBody copies a body to the sink. Bytes count as arrived when they are read; the last ones when they are written. It
// returns how many bytes count that could not be written.
func (t *task) copyBody(body io.Reader, r *request, by counting) (unwritten quantity.Bytes, err error) {
	unit := writeSize
	if t.window != nil {
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
		n, readErr := body.Read(room[:min(len(room), by.room())])
		came := by.read(n)
		filled += came.kept
		if filled > 0 && (filled >= unit || came.isLast || readErr != nil) {
			if _, err := t.sink.WriteAt(memory[:filled], int64(offset)); err != nil {
				return quantity.Bytes(filled), sinkError{err}
			}
			offset += quantity.Bytes(filled)
			filled = 0
		}
		if filled == 0 {
			block.Put(memory)
			memory = nil
		}
		if came.kept > 0 {
			by.progress(came.kept)
		}
		if came.isLast {
			by.hasAll() // A server may send the end of the stream late, or never.
		}
		switch {
		case readErr == io.EOF && !came.isLast:
			return 0, io.ErrUnexpectedEOF
		case readErr == io.EOF:
			return 0, nil
		case readErr != nil:
			return 0, readErr
		case came.isCut:
			return 0, nil
		}
	}
}

// rangeOf brings the counts of a range to the loop.
type rangeOf struct {
	*receiving
	ctx context.Context
}

func (f rangeOf) read(bytes int) arrival {
	e := &read{c: f.c, r: f.r, bytes: bytes}
	f.call(e)
	return e.arrival
}

func (f rangeOf) progress(bytes int) { f.call(progress{f.c, f.r, quantity.Bytes(bytes)}) }
func (f rangeOf) hasAll()            { f.written() }

// room waits until the engine may read more of the answer to the request for the whole file (mayRead).
func (f rangeOf) room() int {
	for f.r.isWhole {
		var bytes int
		var patience time.Duration
		f.call(does(func(d *download) { bytes, patience = d.mayRead(f.c, f.r) }))
		if patience == 0 {
			return bytes
		}
		timer := time.NewTimer(patience)
		select {
		case <-f.ctx.Done():
		case <-f.r.more:
		case <-timer.C:
			f.call(does(func(d *download) { d.isSerial = d.takeBack(f.c, f.r) || d.isSerial }))
		}
		timer.Stop()
		if f.ctx.Err() != nil {
			return 1
		}
	}
	return math.MaxInt
}

// receiveWhole receives the whole resource. It writes to the sink once the connection has won the race.
func (f *receiving) receiveWhole(ctx context.Context) (err error) {
	var body *transport.WholeBody
	if f.opened != nil {
		body = f.opened.body.(*transport.WholeBody)
	} else if body, err = f.r.session.Whole(ctx, f.target, f.resource); err != nil {
		return err
	}
	defer body.Close()
	var lead []byte
	memory := block.Get()
	defer block.Put(memory)
	var offset quantity.Bytes
	won := false
	for {
		n, err := body.Read(memory[:])
		bytes := quantity.Bytes(n)
		offset += bytes
		// A session may break between the last byte and HTTP/2's END_STREAM.
		isEnd := err == io.EOF || err != nil && offset == f.resource.Size
		if err != nil && !isEnd {
			return err
		}
		hadWon, isUnproven := won, isEnd && body.Unproven()
		f.call(does(func(d *download) {
			f.r.received += bytes
			if bytes > 0 {
				d.arrived(f.c, f.r, bytes, d.now)
			}
			won = won || f.r.race.win(f.c, isEnd, offset)
			if won && isUnproven {
				f.r.race.warn(f.c, offset)
			}
		}))
		data := memory[:n]
		if !hadWon {
			lead = append(lead, data...)
			data = lead
		}
		if won {
			lead = nil
			if hasAll, err := f.deliver(ctx, data, offset-quantity.Bytes(len(data))); err != nil || hasAll {
				return err
			}
		}
		switch {
		case !isEnd:
		case !won || f.resource.Size >= 0:
			return nil
		default:
			if sink, ok := f.d.sink.(Sizer); ok {
				if err := sink.Resize(offset); err != nil {
					return sinkError{err}
				}
			}
			return nil
		}
	}
}

// deliver writes the wanted part of the data when the sink has room, and no range is being written. It reports whether
// the sink has all bytes.
func (f *receiving) deliver(ctx context.Context, data []byte, offset quantity.Bytes) (hasAll bool, err error) {
	d, rc := f.d, f.r.race
	d.fetches.Wait()
	var resource transport.Resource
	var parts []ranges.Range
	var restarts, canGoOn bool
	f.call(does(func(d *download) {
		restarts, resource = rc.restart(), d.resource
		parts, canGoOn = rc.missing(offset, offset+quantity.Bytes(len(data)))
		hasAll = rc.hasAll()
	}))
	if restarts {
		if err := d.sink.(Restarter).Restart(resource); err != nil {
			return false, sinkError{err}
		}
	}
	if !canGoOn {
		return false, sinkError{errors.New("the connection was lost, and the server cannot continue where it was")}
	}
	for _, missing := range parts {
		for from := missing.Offset; from < missing.End(); {
			room := min(missing.End(), max(d.limit(), from))
			if room == from {
				if err := f.awaitRoom(ctx); err != nil {
					return false, err
				}
				continue
			}
			if _, err := d.sink.WriteAt(data[from-offset:room-offset], int64(from)); err != nil {
				return false, sinkError{err}
			}
			f.call(does(func(*download) {
				rc.written(f.r, ranges.Range{Offset: from, Length: room - from})
				hasAll = rc.hasAll()
			}))
			from = room
		}
	}
	return hasAll, nil
}

func (f *receiving) awaitRoom(ctx context.Context) error {
	f.call(does(func(*download) { f.r.race.full = true }))
	defer f.call(does(func(*download) { f.r.race.full = false }))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.r.race.grown:
		return nil
	}
}
