// Package output writes a download in order into a pipe, a device, or an open file. It cannot take
// written bytes back, so a download cannot be repeated.
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

// Standard is the name of standard output.
const Standard = "-"

// room is the memory for bytes that are not in order yet.
const room = 8 << 20

// copySize limits how many bytes are written at a time.
const copySize = 128 << 10

// ErrNoReader means that nobody reads the output any more.
var ErrNoReader = errors.New("its reader has gone")

// Stream is a download.Window that writes its bytes in order.
type Stream struct {
	*reorder.Window
	name     string
	to       io.Writer
	checksum []byte
	ctx      context.Context
	resource transport.Resource
	digest   hash.Hash
	// failed receives the error that ends the writing early. It is closed at the end.
	failed chan error
	begun  bool
	close  func() error
	// IsStandard is true if the output is standard output under any name.
	IsStandard bool
}

// Open opens the output with this name, or standard for Standard. It returns nil for the name of a
// plain file. The end of ctx ends the waiting for a reader.
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

// isSame reports whether a file is the one to which a writer writes.
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
		s.resource.SHA256 = nil // The checksum is of the whole resource.
	}
	have, err := s.Window.Begin(resource, part)
	go s.copy()
	return have, err
}

// copy writes the bytes in order as they arrive.
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
			return // The caller of Commit or Abort knows the reason.
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

// Resize implements download.Sizer. The size does not matter here.
func (s *Stream) Resize(quantity.Bytes) error { return nil }

// Commit waits until all bytes are written, and verifies them.
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

// Abort ends the writing.
func (s *Stream) Abort(bool) error {
	_ = s.Window.Abort(true)
	s.stop()
	return nil
}

// stop ends the writing. A write that cannot be ended goes on in the background: a reader may never
// take its bytes.
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
