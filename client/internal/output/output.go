// Package output writes a download in order into a pipe, a device, or what is
// open already. There is no second try: what is written cannot be taken back.
package output

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/partfile"
	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/reorder"
	"github.com/linklab/linklab/client/internal/transport"
)

// Standard is the name that stands for standard output.
const Standard = "-"

// room is the memory for putting bytes in order.
const room = 8 << 20

// copySize is how many bytes are written at a time at most.
const copySize = 128 << 10

// ErrNoReader says that nobody reads any more.
var ErrNoReader = errors.New("its reader has gone")

// Stream is a download.Window that writes into something.
type Stream struct {
	*reorder.Window
	name     string
	to       io.Writer
	checksum []byte
	ctx      context.Context
	resource transport.Resource
	digest   hash.Hash
	// failed receives what ends the writing early, and is closed with its end.
	failed chan error
	begun  bool
	close  func() error
	// IsStandard says that it writes to standard output, however that is called.
	IsStandard bool
}

// Open opens what the name stands for, standard if that is Standard. It returns nil
// if the name is for a plain file. A ctx that ends ends all waiting for a reader.
func Open(ctx context.Context, name string, standard io.Writer, checksum []byte) (*Stream, error) {
	s := &Stream{
		Window: reorder.NewWindow(room), name: name, to: standard, checksum: checksum, ctx: ctx,
		digest: sha256.New(), failed: make(chan error, 1), close: func() error { return nil },
	}
	var file *os.File
	var err error
	if name == Standard {
		s.name = "standard output"
		if own, ok := standard.(*os.File); ok {
			file, err = plainfile.Again(own, s.name)
		}
	} else if file, err = plainfile.Into(ctx, name); err == nil && file == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if file != nil {
		s.to, s.close = file, sync.OnceValue(file.Close)
	}
	s.IsStandard = name == Standard || isSame(file, standard)
	return s, nil
}

// isSame reports whether a file is the one that a writer writes to.
func isSame(file *os.File, w io.Writer) bool {
	other, ok := w.(*os.File)
	if !ok {
		return false
	}
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	its, err := other.Stat()
	return err == nil && os.SameFile(mine, its)
}

// Begin implements download.Sink.
func (s *Stream) Begin(resource transport.Resource, part ranges.Range) ([]ranges.Range, error) {
	s.resource, s.begun = resource, true
	if part.Length != resource.Size {
		s.resource.SHA256 = nil // That is of the whole.
	}
	have, err := s.Window.Begin(resource, part)
	go s.copy()
	return have, err
}

// copy writes what arrives, in order, until there is no more.
func (s *Stream) copy() {
	defer close(s.failed)
	memory := make([]byte, copySize)
	for {
		n, err := s.Read(memory)
		if n > 0 {
			s.digest.Write(memory[:n])
			if _, err := s.to.Write(memory[:n]); err != nil {
				s.failed <- s.reason(err)
				return
			}
		}
		if err != nil {
			return // The end: who called Commit or Abort knows how it came to it.
		}
	}
}

func (s *Stream) reason(err error) error {
	if errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("%s: %w", s.name, ErrNoReader)
	}
	return err
}

// Failed implements download.Failer.
func (s *Stream) Failed() <-chan error { return s.failed }

// Resize implements download.Sizer: nobody has to know.
func (s *Stream) Resize(quantity.Bytes) error { return nil }

// Commit waits until all is written, and verifies it.
func (s *Stream) Commit() ([]byte, error) {
	_, _ = s.Window.Commit()
	select {
	case err := <-s.failed:
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
	case <-s.ctx.Done():
		s.stop()
		return nil, context.Cause(s.ctx)
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	sum := s.digest.Sum(nil)
	if err := partfile.Verify(sum, s.checksum, s.resource); err != nil {
		return nil, fmt.Errorf("%w; all of it is written to %s already", err, s.name)
	}
	return sum, nil
}

// Abort writes no more.
func (s *Stream) Abort(bool) error {
	_ = s.Window.Abort(true)
	s.stop()
	return nil
}

// stop ends the writing, and lets it end by itself where it cannot be ended: a
// reader may take nothing for ever.
func (s *Stream) stop() {
	file, ok := s.to.(*os.File)
	if ok && file.SetWriteDeadline(time.Unix(1, 0)) != nil {
		return
	}
	for s.begun {
		if _, more := <-s.failed; !more {
			break
		}
	}
	_ = s.close()
}
