package partfile

import (
	"encoding/hex"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// record knows which bytes of a part are written, and keeps NAME.part.state up to date.
type record struct {
	part *part
	// url, checksum and resource describe the file, as state does.
	url      string
	checksum []byte
	resource transport.Resource

	mu      sync.Mutex
	written *ranges.Set
	// pending counts the bytes since the last checkpoint, and checked is its time.
	pending quantity.Bytes
	checked time.Time
	// checking is closed at the end of the current checkpoint.
	checking chan struct{}
	// failed is why written bytes may be lost.
	failed error
}

// A checkpoint follows after so many bytes, or after so much time.
const (
	checkpointBytes = 256 << 20
	checkpointTime  = 5 * time.Second
)

func newRecord(p *part, o Options) *record {
	return &record{part: p, url: o.URL, checksum: o.Checksum, written: &ranges.Set{}, checked: time.Now()}
}

// begin records a resource, of which an earlier download has written some ranges.
func (r *record) begin(resource transport.Resource, have []ranges.Range) {
	r.resource, r.written = resource, ranges.NewSet(have...)
}

// restart forgets all written bytes and removes the state.
func (r *record) restart(resource transport.Resource) error {
	r.settle()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resource, r.written = resource, ranges.NewSet()
	if err := os.Remove(r.part.stateName()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// add records a written range, and starts a checkpoint if one is due. It returns an error if
// written bytes may be lost.
func (r *record) add(written ranges.Range) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.failed
	}
	r.written.Add(written)
	r.pending += written.Length
	if r.checking == nil && (r.pending >= checkpointBytes || time.Since(r.checked) >= checkpointTime) {
		ended := make(chan struct{})
		r.checking = ended
		snapshot := r.snapshot()
		go func() {
			defer close(ended)
			// Without this state the next download has more to do. Nothing else is lost.
			_ = r.checkpoint(snapshot)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.checking = nil
		}()
	}
	return nil
}

// snapshot returns the state of the bytes written so far.
func (r *record) snapshot() state {
	r.pending, r.checked = 0, time.Now()
	s := newState(r.url, r.resource, r.written.Ranges())
	s.Checksum = hex.EncodeToString(r.checksum)
	return s
}

// checkpoint makes the bytes of the state durable, and then the state.
func (r *record) checkpoint(s state) error {
	if err := r.sync(); err != nil {
		return err
	}
	return s.write(r.part.stateName())
}

// sync makes the written bytes durable. The kernel reports a failure only once, so r keeps it.
func (r *record) sync() error {
	err := r.part.flush()
	if err == nil {
		err = r.part.owned()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
	return r.failed
}

// settle waits for the end of a checkpoint.
func (r *record) settle() {
	r.mu.Lock()
	checking := r.checking
	r.mu.Unlock()
	if checking != nil {
		<-checking
	}
}
