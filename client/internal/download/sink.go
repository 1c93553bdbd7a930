package download

import (
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// A Sink takes the bytes of a download. Exactly one of Commit and Abort is called, last.
type Sink interface {
	// Begin is called once, before any bytes are written, with the part of the resource that will
	// be written. It returns the ranges of it that the sink has already.
	Begin(resource transport.Resource, part ranges.Range) (have []ranges.Range, err error)
	// WriteAt writes bytes that belong at offset of the resource. It is called concurrently, and p is valid until it
	// returns. A range may be written again, with the same bytes.
	WriteAt(p []byte, offset int64) (int, error)
	// Commit is called when all bytes are written. It returns the SHA-256 of the whole, or nil if
	// the sink does not know it.
	Commit() (sha256 []byte, err error)
	// Abort is called if the download failed. distrust says that written bytes may be wrong.
	Abort(distrust bool) error
}

// A Window is a Sink whose bytes a program reads in order, and which has bounded room. The engine
// requests nothing beyond its limit.
type Window interface {
	Sink
	// Size is for how many bytes there is room at a time.
	Size() quantity.Bytes
	// Limit is the offset from which there is no room. It only grows.
	Limit() quantity.Bytes
	// Grown receives after Limit has grown. It has room for one notice, so that the reader never waits for the engine.
	Grown() <-chan struct{}
}

// A Failer is a Sink that may fail while nothing is written to it, as when its reader leaves. An
// error from Failed ends the download.
type Failer interface {
	Failed() <-chan error
}

// A Continuer is a Sink that may have bytes of an earlier call. Then the engine learns which bytes
// are missing before it requests any.
type Continuer interface {
	Continues() bool
	// Fits reports whether these bytes are of the resource.
	Fits(transport.Resource) bool
}

// A Sizer is a Sink that needs the size at the end, if Begin did not know it.
type Sizer interface {
	Resize(size quantity.Bytes) error
}

// A Restarter is a Sink that can begin again with another resource of the same size. The engine
// writes nothing meanwhile.
type Restarter interface {
	Restart(resource transport.Resource) error
}
