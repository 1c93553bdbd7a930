// Package partfile writes the downloaded file. Until the file is complete, it has another name.
package partfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ownfile"
	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// File is a download that is not complete: NAME.part (see nameOfPart). It becomes NAME when it
// is complete. NAME.part.state tells the next download which bytes can be kept.
type File struct {
	Options
	part     *os.File
	resource transport.Resource
	begun    bool
	// resumable is true if another download can prove that it has the same resource.
	resumable bool
	// earlier is the state that this download continues, its zero value without one.
	earlier state
	// sample holds the ranges of it that are compared with the bytes that arrive.
	sample []ranges.Range
	// aside is true if there is another part, NAME.part.old.
	aside bool
	// flush is part.Sync.
	flush func() error

	mu      sync.Mutex
	written *ranges.Set
	// unproven holds the bytes of the sample that have not arrived yet.
	unproven *ranges.Set
	// pending counts the bytes since the last checkpoint, and checked is its time.
	pending quantity.Bytes
	checked time.Time
	// checking is closed at the end of the current checkpoint.
	checking chan struct{}
	// failed is why written bytes may be lost.
	failed error
}

// Options describes the file to write.
type Options struct {
	Name string
	// Checksum is the SHA-256 that the file must have, nil if unknown.
	Checksum []byte
	// Resume keeps the part if the download fails, and continues the part that an earlier
	// download from URL has left.
	Resume bool
	URL    string
	// ServerName gives the file the name that the server proposes, if any, in the directory
	// of Name. Then no file is replaced.
	ServerName bool
	// NoReplace keeps a file that has the name. Create and Commit then fail with ErrExists.
	NoReplace bool
	// Log, if not nil, reports parts that are set aside.
	Log *slog.Logger
}

// A checkpoint follows after so many bytes, or after so much time.
const (
	checkpointBytes = 256 << 20
	checkpointTime  = 5 * time.Second
)

// Create opens the part for writing. It returns an error if the part cannot become the file, or
// if another process writes it. Without NoReplace the caller has checked that the name is free
// or belongs to a plain file (plainfile.Into).
func Create(o Options) (*File, error) {
	if o.NoReplace {
		if err := CheckFree(o.Name); err != nil {
			return nil, err
		}
	}
	partName, err := nameOfPart(o.Name)
	if err != nil {
		return nil, err
	}
	for {
		part, err := ownfile.OpenOrCreate(partName, 0o666)
		if err != nil {
			return nil, err
		}
		current, err := lock(part)
		if err != nil {
			part.Close()
			return nil, fmt.Errorf("%s: %w", part.Name(), err)
		}
		if !current {
			part.Close()
			continue
		}
		return &File{Options: o, part: part, flush: part.Sync, written: &ranges.Set{}, unproven: &ranges.Set{}, checked: time.Now()}, nil
	}
}

// Continues reports whether an earlier download has left a state.
func (f *File) Continues() bool {
	if !f.Resume {
		return false
	}
	for _, part := range []string{f.part.Name(), f.asideName()} {
		if _, err := os.Lstat(stateOf(part)); err == nil {
			return true
		}
	}
	return false
}

// clear empties the part. It removes the state first: a state must never list missing bytes.
func (f *File) clear() error {
	if err := unlink(f.stateName()); err != nil {
		return err
	}
	return f.part.Truncate(0)
}

func (f *File) stateName() string { return stateOf(f.part.Name()) }

// Begin prepares for the whole resource, and returns the ranges from earlier downloads.
func (f *File) Begin(resource transport.Resource, _ ranges.Range) ([]ranges.Range, error) {
	if err := f.owned(); err != nil {
		return nil, err
	}
	if err := f.takeName(resource.Name); err != nil {
		return nil, err
	}
	f.resource, f.resumable = resource, f.canResume(resource)
	have, err := f.resume()
	if err != nil {
		return nil, err
	}
	f.begun, f.written = true, ranges.NewSet(have...)
	if resource.Size > 0 {
		return have, f.allocate(resource.Size)
	}
	return have, nil
}

// canResume reports whether another download could prove that it has the resource.
func (f *File) canResume(r transport.Resource) bool {
	verified := f.Checksum != nil || r.SHA256 != nil
	return f.Resume && r.Size > 0 && !r.NoRanges && (verified || r.HasValidator())
}

// Restart forgets all written bytes: another resource of the same size follows. Nothing proves
// what that is, so it cannot be continued later.
func (f *File) Restart(resource transport.Resource) error {
	f.settle()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resource, f.resumable, f.written = resource, false, ranges.NewSet()
	if err := os.Remove(f.stateName()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// allocate reserves size bytes, so that a full disk is noticed before the download.
func (f *File) allocate(size quantity.Bytes) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.part.Fd()), 0, 0, int64(size))
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.part.Truncate(int64(size))
	}
	if err != nil {
		err = fmt.Errorf("reserve %d bytes for %s: %w", size, f.part.Name(), err)
		if f.aside {
			err = fmt.Errorf("%w (an earlier part has as many as it needs, too: remove it if it is of no use)", err)
		}
	}
	return err
}

// Resize sets the size of the file.
func (f *File) Resize(size quantity.Bytes) error { return f.part.Truncate(int64(size)) }

// WriteAt writes p at offset. It may be called concurrently.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.compare(p, offset); err != nil {
		return 0, err
	}
	n, err := f.part.WriteAt(p, offset)
	if !f.resumable {
		return n, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return 0, f.failed
	}
	f.written.Add(ranges.Range{Offset: quantity.Bytes(offset), Length: quantity.Bytes(n)})
	f.unproven.Remove(ranges.Range{Offset: quantity.Bytes(offset), Length: quantity.Bytes(n)})
	f.pending += quantity.Bytes(n)
	if f.checking == nil && f.isSampleProven() && (f.pending >= checkpointBytes || time.Since(f.checked) >= checkpointTime) {
		ended := make(chan struct{})
		f.checking = ended
		snapshot := f.snapshot()
		go func() {
			defer close(ended)
			// Without this state the next download has more to do. Nothing else is lost.
			_ = f.checkpoint(snapshot)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.checking = nil
		}()
	}
	return n, err
}

// snapshot returns the state of the bytes written so far.
func (f *File) snapshot() state {
	f.pending, f.checked = 0, time.Now()
	s := newState(f.URL, f.resource, f.written.Ranges())
	s.Checksum = hex.EncodeToString(f.Checksum)
	return s
}

// checkpoint makes the bytes of the state durable, and then the state.
func (f *File) checkpoint(s state) error {
	if err := f.sync(); err != nil {
		return err
	}
	return s.write(f.stateName())
}

// sync makes the written bytes durable. The kernel reports a failure only once, so f keeps it.
func (f *File) sync() error {
	err := f.flush()
	if err == nil {
		err = f.owned()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
	return f.failed
}

// settle waits for the end of a checkpoint.
func (f *File) settle() {
	f.mu.Lock()
	checking := f.checking
	f.mu.Unlock()
	if checking != nil {
		<-checking
	}
}

// sha256 reads the file back and returns its checksum.
func (f *File) sha256() ([sha256.Size]byte, error) {
	hash := sha256.New()
	if _, err := f.part.Seek(0, io.SeekStart); err != nil {
		return [sha256.Size]byte{}, err
	}
	if _, err := io.CopyBuffer(hash, struct{ io.Reader }{f.part}, make([]byte, 256<<10)); err != nil {
		return [sha256.Size]byte{}, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// Commit verifies the file, makes it durable and gives it its name. If its checksum is wrong,
// NAME.part stays without a state, because any byte may be wrong. If the name cannot be used,
// NAME.part stays. Without Resume nothing stays in either case.
func (f *File) Commit() ([]byte, error) {
	f.settle()
	if f.failed != nil {
		return nil, errors.Join(f.failed, f.Abort(false))
	}
	sum, err := f.sha256()
	if err != nil {
		return nil, errors.Join(err, f.Abort(false))
	}
	if err := Verify(sum[:], f.Checksum, f.resource); err != nil {
		if !f.Resume {
			return nil, errors.Join(err, f.Abort(true))
		}
		if ownErr := f.owned(); ownErr != nil {
			return nil, errors.Join(err, ownErr, f.part.Close())
		}
		err = fmt.Errorf("%w; it stays as %s, and the next call begins anew", err, f.part.Name())
		return nil, errors.Join(err, unlink(f.stateName()), f.part.Close())
	}
	switch err := f.rename(); {
	case err == nil:
		return sum[:], f.part.Close()
	case f.Resume && !f.resumable && f.failed == nil:
		// No download could continue this part, but it is complete.
		return nil, errors.Join(fmt.Errorf("%w; %s is whole", err, f.part.Name()), f.part.Close())
	default:
		return nil, errors.Join(err, f.Abort(false))
	}
}

// Verify returns an error unless the SHA-256 of a file is the one from the user and the one
// from the server.
func Verify(sum, checksum []byte, resource transport.Resource) error {
	switch {
	case checksum != nil && !bytes.Equal(checksum, sum):
		return fmt.Errorf("the file has the SHA-256 %x instead of %x", sum, checksum)
	case resource.SHA256 != nil && !bytes.Equal(resource.SHA256, sum):
		return fmt.Errorf("the file has the SHA-256 %x, but the server says %x (Repr-Digest)", sum, resource.SHA256)
	}
	return nil
}

// rename makes the file durable and gives it its name.
func (f *File) rename() error {
	if err := f.sync(); err != nil {
		return err
	}
	move := plainfile.Rename
	if f.NoReplace {
		move = renameNew
	}
	if err := move(f.part.Name(), f.Name); err != nil {
		return err
	}
	err := unlink(f.stateName())
	if f.aside {
		err = errors.Join(err, f.dropAside())
	}
	if err != nil {
		return err
	}
	syncDirectory(f.Name)
	return nil
}

// Abort keeps what the next download can use. With distrust the bytes of this call may be
// wrong, so only the bytes of earlier downloads are kept.
func (f *File) Abort(distrust bool) error {
	f.settle()
	if !f.begun {
		return errors.Join(f.leave(), f.part.Close())
	}
	var err error
	keep := f.resumable && f.failed == nil && (f.earlier.proven() > 0 || !distrust && f.written.First().Length > 0)
	switch {
	case !keep:
	case distrust:
		err = f.checkpoint(f.earlier)
	case f.isSampleProven():
		if err = f.checkpoint(f.snapshot()); err != nil {
			// An older state is still right, unless bytes are lost.
			_, stateErr := os.Lstat(f.stateName())
			keep = stateErr == nil && f.failed == nil
		}
	}
	if !keep {
		err = errors.Join(err, f.remove())
		if f.aside {
			err = errors.Join(err, f.restore())
		}
	}
	return errors.Join(err, f.part.Close())
}

// remove removes the files of this download.
func (f *File) remove() error {
	if f.owned() != nil {
		return nil
	}
	// The state goes first, because it must never list missing bytes.
	return errors.Join(unlink(f.stateName()), unlink(f.part.Name()))
}

// leave keeps what an earlier download has left.
func (f *File) leave() error {
	_, stateErr := os.Lstat(f.stateName())
	info, err := f.part.Stat()
	if err == nil && stateErr != nil && info.Size() == 0 {
		err = f.remove()
	}
	return err
}
