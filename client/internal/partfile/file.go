// Package partfile writes the downloaded file. Until the file is complete, it has another name.
package partfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// File is a download that is not complete: NAME.part (see nameOfPart). It becomes NAME when it
// is complete. NAME.part.state tells the next download which bytes can be kept.
type File struct {
	Options
	part   *part
	record *record
	begun  bool
	// resumable is true if another download can prove that it has the same resource.
	resumable bool
	// earlier is the state that this download continues, its zero value without one.
	earlier state
}

// Create opens the part for writing. It returns an error if the part cannot become the file, or
// if another process writes it. The caller has checked that the name is free or belongs to a
// plain file (plainfile.Into).
func Create(o Options) (*File, error) {
	partName, err := nameOfPart(o.Name)
	if err != nil {
		return nil, err
	}
	mode := os.FileMode(0o666)
	if replaced, ok := o.replaced(); ok {
		mode = replaced | 0o600 // A later call may continue the part.
	}
	part, err := openPart(partName, mode)
	if err != nil {
		return nil, err
	}
	return &File{Options: o, part: part, record: newRecord(part, o)}, nil
}

// Continues reports whether an earlier download has left a part with its state.
func (f *File) Continues() bool {
	_, ok := found(f.part.name())
	return ok && f.Resume
}

// Fits reports whether the part from an earlier download belongs to the resource.
func (f *File) Fits(resource transport.Resource) bool {
	s, ok := found(f.part.name())
	return ok && f.fits(s, resource)
}

// resume returns the ranges that an earlier download has left. It refuses a part with bytes of
// another resource. A part without a state is of a download that was killed early if it has the size
// that this reserves, else of another program. Without Resume the part is emptied.
func (f *File) resume(resource transport.Resource) ([]ranges.Range, error) {
	s, ok := found(f.part.name())
	switch {
	case ok && f.fits(s, resource):
		f.earlier = s
		return s.ranges(), nil
	case ok && f.Resume && s.proven() > 0:
		return nil, fmt.Errorf("%s holds %d bytes of another file, or of another version: remove it, give another name, or begin anew with --resume=false", f.part.name(), s.proven())
	}
	if info, err := f.part.file.Stat(); err != nil || f.Resume && info.Size() != 0 && info.Size() != int64(resource.Size) && !exists(f.part.stateName()) {
		return nil, errors.Join(err, fmt.Errorf("%s may be another program's: remove it, give another name, or begin anew with --resume=false", f.part.name()))
	}
	return nil, f.part.clear()
}

// Begin prepares for the whole resource, and returns the ranges from earlier downloads.
func (f *File) Begin(resource transport.Resource, _ ranges.Range) ([]ranges.Range, error) {
	if err := f.part.owned(); err != nil {
		return nil, err
	}
	f.resumable = f.canResume(resource)
	have, err := f.resume(resource)
	if err != nil {
		return nil, err
	}
	f.begun = true
	f.record.begin(resource, have)
	if resource.Size > 0 {
		err = f.part.allocate(resource.Size)
	}
	return have, err
}

// Restart forgets all written bytes: another resource of the same size follows. Nothing proves
// what that is, so it cannot be continued later.
func (f *File) Restart(resource transport.Resource) error {
	f.resumable = false
	return f.record.restart(resource)
}

// Resize sets the size of the file.
func (f *File) Resize(size quantity.Bytes) error { return f.part.file.Truncate(int64(size)) }

// WriteAt writes p at offset. It may be called concurrently.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.part.file.WriteAt(p, offset)
	if !f.resumable {
		return n, err
	}
	if lost := f.record.add(ranges.Range{Offset: quantity.Bytes(offset), Length: quantity.Bytes(n)}); lost != nil {
		return 0, lost
	}
	return n, err
}

// Commit verifies the file, makes it durable and gives it its name. If its checksum is wrong,
// NAME.part stays without a state, because any byte may be wrong. If the name cannot be used,
// NAME.part stays. Without Resume nothing stays in either case.
func (f *File) Commit() ([]byte, error) {
	f.record.settle()
	if f.record.failed != nil {
		return nil, errors.Join(f.record.failed, f.Abort(false))
	}
	sum, err := f.part.sha256()
	if err != nil {
		return nil, errors.Join(err, f.Abort(false))
	}
	if err := Verify(sum[:], f.Checksum, f.record.resource); err != nil {
		if !f.Resume {
			return nil, errors.Join(err, f.Abort(true))
		}
		if ownErr := f.part.owned(); ownErr != nil {
			return nil, errors.Join(err, ownErr, f.part.file.Close())
		}
		err = fmt.Errorf("%w; it stays as %s, and the next call begins anew", err, f.part.name())
		return nil, errors.Join(err, unlink(f.part.stateName()), f.part.file.Close())
	}
	switch err := f.rename(); {
	case err == nil:
		return sum[:], f.part.file.Close()
	case f.Resume && !f.resumable && f.record.failed == nil:
		// No download could continue this part, but it is complete.
		return nil, errors.Join(fmt.Errorf("%w; %s is whole", err, f.part.name()), f.part.file.Close())
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

// replaced returns the permissions of the file that the download replaces, if there is one.
func (o Options) replaced() (os.FileMode, bool) {
	info, err := os.Stat(o.Name)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Mode().Perm(), true
}

// rename makes the file durable and gives it its name.
func (f *File) rename() error {
	if err := f.record.sync(); err != nil {
		return err
	}
	if mode, ok := f.replaced(); ok {
		_ = f.part.file.Chmod(mode) // Some file systems give all files the same permissions.
	}
	if err := plainfile.Rename(f.part.name(), f.Name); err != nil {
		return err
	}
	if err := unlink(f.part.stateName()); err != nil {
		return err
	}
	syncDirectory(f.Name)
	return nil
}

// Abort keeps what the next download can use. With distrust the bytes of this call may be
// wrong, so only the bytes of earlier downloads are kept.
func (f *File) Abort(distrust bool) error {
	f.record.settle()
	if !f.begun {
		return errors.Join(f.part.leave(), f.part.file.Close())
	}
	var err error
	keep := f.resumable && f.record.failed == nil && (f.earlier.proven() > 0 || !distrust && f.record.written.First().Length > 0)
	switch {
	case !keep:
	case distrust:
		err = f.record.checkpoint(f.earlier)
	default:
		if err = f.record.checkpoint(f.record.snapshot()); err != nil {
			// An older state is still right, unless bytes are lost.
			keep = exists(f.part.stateName()) && f.record.failed == nil
		}
	}
	if !keep {
		err = errors.Join(err, f.part.remove())
	}
	return errors.Join(err, f.part.file.Close())
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
