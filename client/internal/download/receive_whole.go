package download

import (
	"context"
	"errors"
	"io"

	"github.com/linklab/linklab/client/internal/block"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// receivingWhole sends a request for a whole resource in a race, or takes over that of an opening, and receives the
// answer. It is an action, which ends with the event receivedWhole.
type receivingWhole struct {
	d        *download
	c        *connection
	r        *request
	opened   *opening
	target   transport.Target
	resource transport.Resource
}

func (f *receivingWhole) perform() {
	d := f.d
	rc := d.race
	ctx, cancel := context.WithCancel(transport.WithProof(d.ctx, f.r.proof))
	f.r.cancel = cancel
	if o := f.opened; o != nil {
		f.r.cancel = func() { cancel(); o.drop() }
	}
	end := f.r.cancel
	d.launch(func() {
		err := f.receive(ctx, rc)
		isCanceled := ctx.Err() != nil
		end()
		d.post(receivedWhole{rc, f.c, f.r, isCanceled, err})
	})
}

// receive receives the resource. It writes to the sink once the connection has won the race.
func (f *receivingWhole) receive(ctx context.Context, rc *race) error {
	body, err := f.body(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	var lead []byte
	memory := block.Get()
	defer block.Put(memory)
	e := &readWhole{race: rc, c: f.c, r: f.r}
	for {
		n, err := body.Read(memory[:])
		offset := e.offset + quantity.Bytes(n)
		// A session may break between the last byte and HTTP/2's END_STREAM.
		isEnd := err == io.EOF || err != nil && offset == f.resource.Size
		if err != nil && !isEnd {
			return err
		}
		hadWon := e.won
		e.bytes, e.offset, e.isEnd = quantity.Bytes(n), offset, isEnd
		e.isUnproven = isEnd && body.Unproven()
		f.d.call(e)
		data := memory[:n]
		if !hadWon {
			lead = append(lead, data...)
			data = lead
		}
		if e.won {
			lead = nil
			if hasAll, err := f.deliver(ctx, rc, data, offset-quantity.Bytes(len(data))); err != nil || hasAll {
				return err
			}
		}
		switch {
		case !isEnd:
		case !e.won || f.resource.Size >= 0:
			return nil
		default:
			return f.resize(offset)
		}
	}
}

// body returns the body of the answer.
func (f *receivingWhole) body(ctx context.Context) (*transport.WholeBody, error) {
	if f.opened != nil {
		return f.opened.body.(*transport.WholeBody), nil
	}
	return f.r.session.Whole(ctx, f.target, f.resource)
}

// deliver writes the wanted part of the data when the sink has room, and no range is being written. It reports whether
// the sink has all bytes.
func (f *receivingWhole) deliver(ctx context.Context, rc *race, data []byte, offset quantity.Bytes) (hasAll bool, err error) {
	d := f.d
	d.fetches.Wait()
	e := &delivery{race: rc, offset: offset, end: offset + quantity.Bytes(len(data))}
	if d.call(e); e.restarts {
		if err := d.sink.(Restarter).Restart(e.resource); err != nil {
			return false, sinkError{err}
		}
	}
	if !e.canGoOn {
		return false, sinkError{errors.New("the connection was lost, and the server cannot continue where it was")}
	}
	for _, missing := range e.missing {
		for from := missing.Offset; from < missing.End(); {
			room := min(missing.End(), max(d.limit(), from))
			if room == from {
				if err := f.awaitRoom(ctx, rc); err != nil {
					return false, err
				}
				continue
			}
			if _, err := d.sink.WriteAt(data[from-offset:room-offset], int64(from)); err != nil {
				return false, sinkError{err}
			}
			d.call(writtenWhole{rc, f.r, ranges.Range{Offset: from, Length: room - from}})
			from = room
		}
	}
	all := &completion{race: rc}
	d.call(all)
	return all.hasAll, nil
}

// awaitRoom waits until the sink has more room.
func (f *receivingWhole) awaitRoom(ctx context.Context, rc *race) error {
	f.d.call(awaitsRoom{rc, true})
	defer f.d.call(awaitsRoom{rc, false})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rc.grown:
		return nil
	}
}

// resize tells the sink the size, which was unknown.
func (f *receivingWhole) resize(size quantity.Bytes) error {
	if sink, ok := f.d.sink.(Sizer); ok {
		if err := sink.Resize(size); err != nil {
			return sinkError{err}
		}
	}
	return nil
}

// readWhole is bytes of a whole resource that arrived. It says whether the connection has won the race.
type readWhole struct {
	*race
	c *connection
	r *request
	// offset is behind the bytes. isEnd says that these are the last ones, and isUnproven that nothing proves it.
	bytes, offset     quantity.Bytes
	isEnd, isUnproven bool
	won               bool
}

func (e *readWhole) step(d *download) {
	e.r.received += e.bytes
	if e.bytes > 0 {
		d.arrived(e.c, e.r, e.bytes, d.now)
	}
	if !e.won {
		e.won = e.win(e.c, e.isEnd, e.offset)
	}
	if e.won && e.isUnproven {
		e.warn(e.c, e.offset)
	}
}

// delivery asks which of some bytes the sink still wants. restarts says that the sink must begin again before. canGoOn
// is false if a program has read other bytes instead.
type delivery struct {
	*race
	offset, end quantity.Bytes
	restarts    bool
	resource    transport.Resource
	missing     []ranges.Range
	canGoOn     bool
}

func (e *delivery) step(d *download) {
	e.restarts, e.resource = e.restart(), d.resource
	e.missing, e.canGoOn = e.race.missing(e.offset, e.end)
}

// writtenWhole is bytes of a whole resource that were written to the sink.
type writtenWhole struct {
	*race
	r    *request
	part ranges.Range
}

func (e writtenWhole) step(*download) {
	e.r.used += e.part.Length
	e.have.Add(e.part)
}

// completion asks whether the sink has all bytes.
type completion struct {
	*race
	hasAll bool
}

func (e *completion) step(*download) { e.hasAll = e.race.hasAll() }

// awaitsRoom says that the winner waits for room in the sink, or does not wait any more.
type awaitsRoom struct {
	*race
	isWaiting bool
}

func (e awaitsRoom) step(*download) { e.race.full = e.isWaiting }

// receivedWhole is the end of what such a request brought. isCanceled says that the engine ended it.
type receivedWhole struct {
	*race
	c          *connection
	r          *request
	isCanceled bool
	err        error
}

func (e receivedWhole) step(*download) { e.ended(e.c, e.r, e.isCanceled, e.err) }
