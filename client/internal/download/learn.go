package download

import (
	"context"
	"errors"
	"io"

	"github.com/linklab/linklab/client/internal/transport"
)

// This file sends the requests by which the engine learns what the URL stands for.

// perform asks by HEAD. The answer is an event.
func (q *question) perform() {
	q.d.launch(func() {
		if q.d.Resource != nil {
			q.resource = *q.d.Resource
		} else {
			q.resource, q.err = learn(q.d.ctx, q.s.Conn, q.target, q.again)
		}
		q.d.post(q)
	})
}

// learn asks by HEAD. It asks by GET if the server refuses HEAD or tells no size, or if the client
// did not believe an earlier answer. Some servers say 0 for a size that they do not know, as quic-go's does.
func learn(ctx context.Context, s *transport.Conn, target transport.Target, again bool) (transport.Resource, error) {
	ctx = transport.WithProof(ctx, new(transport.Proof)) // To learn the size is no progress.
	if again {
		return s.Peek(ctx, target)
	}
	resource, err := s.Head(ctx, target)
	sizeless := err == nil && resource.Size <= 0 && !resource.NoRanges
	if !sizeless && !isRefused(err) {
		return resource, err
	}
	peeked, peekErr := s.Peek(ctx, target)
	if isRefused(peekErr) || sizeless && errors.As(peekErr, new(*transport.MismatchError)) {
		return resource, err
	}
	return peeked, peekErr
}

// isRefused reports whether the server refuses such requests for good.
func isRefused(err error) bool {
	status := new(transport.StatusError)
	return errors.As(err, &status) && !status.Temporary()
}

func (l *learned) perform() {
	l.have, l.err = l.d.sink.Begin(l.d.resource, l.d.part)
	l.d.pending = append(l.d.pending, l)
}

// perform sends the opening. The answer is an event.
func (o *opening) perform() {
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(transport.WithProof(o.d.ctx, o.proof))
	part := o.part // adopt may shorten o.part meanwhile.
	o.d.launch(func() {
		o.resource, o.body, o.err = o.on.Begin(ctx, o.target, part)
		o.isCanceled = ctx.Err() != nil
		close(o.answered)
		o.d.post(o)
	})
}

// result waits for the answer, which must be of that resource, and returns its body.
func (o *opening) result(ctx context.Context, of transport.Resource) (io.ReadCloser, error) {
	select {
	case <-o.answered:
	case <-ctx.Done():
		o.drop()
		return nil, ctx.Err()
	}
	if o.err != nil {
		return nil, o.err
	}
	if o.resource.NoRanges {
		o.drop()
		return nil, transport.ErrNoRanges
	}
	if err := of.CheckSame(o.resource); err != nil {
		o.drop()
		return nil, err
	}
	return o.body, nil
}

// drop ends the opening's request and closes the body of its answer.
func (o *opening) drop() {
	o.cancel()
	select {
	case <-o.answered:
		if o.body != nil {
			o.body.Close()
		}
	default:
	}
}
