package download

import (
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// A Sink takes the bytes of a download. Exactly one of Commit and Abort is
// called, last.
type Sink interface {
	// Begin is called once, before any bytes are written: part of the
	// resource will be. It returns what of that the sink holds already.
	Begin(resource transport.Resource, part ranges.Range) (have []ranges.Range, err error)
	// WriteAt writes bytes that belong at offset of the resource. It is
	// called concurrently, and p is valid until it returns. A range may be
	// written again, with the same bytes.
	WriteAt(p []byte, offset int64) (int, error)
	// Commit is called when every byte is written. It returns the SHA-256 of
	// the whole, nil if the sink does not know it.
	Commit() (sha256 []byte, err error)
	// Abort is called if the download failed. distrust says that what was
	// written may be wrong.
	Abort(distrust bool) error
}

// A Window is a Sink that takes bytes in order and has bounded room. Nothing
// is requested beyond its limit.
type Window interface {
	Sink
	// Size is the number of bytes for which there is room at a time.
	Size() quantity.Bytes
	// Limit is the offset before which bytes may be requested. It only grows.
	Limit() quantity.Bytes
	// Grown receives after Limit has grown. It has room for one notice, and
	// who grows the limit does not wait.
	Grown() <-chan struct{}
}

// A Failer is a Sink that may fail while nothing is written to it, as when its reader
// goes. What Failed receives then ends the download.
type Failer interface {
	Failed() <-chan error
}

// A Continuer is a Sink that may hold bytes of an earlier call. Then what they
// are of is asked before any others are asked for.
type Continuer interface {
	Continues() bool
	// Fits reports whether these bytes are of the resource.
	Fits(transport.Resource) bool
}

// A Sizer is a Sink that wants to know how many bytes there were if Begin
// could not tell.
type Sizer interface {
	Resize(size quantity.Bytes) error
}

// A Restarter is a Sink that can begin again with another resource of the same size.
// Nothing is written meanwhile.
type Restarter interface {
	Restart(resource transport.Resource) error
}
