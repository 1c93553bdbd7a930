// Package payload writes the downloaded file.
package payload

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// File is a download that has not got its name yet: NAME.part, which becomes
// NAME only when it is whole.
type File struct {
	name string
	part *os.File
	// checksum is the SHA-256 that the file must have; nil if unknown.
	checksum []byte
}

// Create opens name.part for writing, or returns an error if that can not
// become name or if another process is writing it. If checksum is not nil,
// it is the SHA-256 that the file must have.
func Create(name string, checksum []byte) (*File, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: a file name is needed", name)
	}
	for {
		part, err := os.OpenFile(name+".part", os.O_RDWR|os.O_CREATE, 0o666)
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
		if err := part.Truncate(0); err != nil {
			part.Close()
			return nil, err
		}
		return &File{name: name, part: part, checksum: checksum}, nil
	}
}

// lock takes the file for this process alone. It reports false if another
// process renamed or removed the file in between.
func lock(part *os.File) (current bool, err error) {
	err = unix.Flock(int(part.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, errors.New("another download is writing this file")
	case err != nil:
		return false, err
	}
	opened, err := part.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(part.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}

// Begin prepares for the whole resource.
func (f *File) Begin(resource transport.Resource, _ ranges.Range) ([]ranges.Range, error) {
	return nil, f.allocate(resource.Size)
}

// allocate reserves size bytes, so that a full disk is known before the
// download.
func (f *File) allocate(size int64) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.part.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.part.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes for %s: %w", size, f.part.Name(), err)
	}
	return nil
}

// WriteAt writes p at offset; it may be called concurrently.
func (f *File) WriteAt(p []byte, offset int64) (int, error) { return f.part.WriteAt(p, offset) }

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

// Commit verifies the file, makes it durable and gives it its name. On error
// nothing is left.
func (f *File) Commit() ([]byte, error) {
	sum, err := f.sha256()
	if err == nil && f.checksum != nil && !bytes.Equal(f.checksum, sum[:]) {
		err = fmt.Errorf("the file has the SHA-256 %x instead of %x", sum, f.checksum)
	}
	if err == nil {
		err = f.rename()
	}
	if err != nil {
		return nil, errors.Join(err, f.Abort(true))
	}
	return sum[:], nil
}

// rename makes the file durable and gives it its name.
func (f *File) rename() error {
	if err := f.part.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.part.Name(), f.name); err != nil {
		return err
	}
	// The file has its name now; a file system that can not sync a directory
	// (hostfs, some FUSE) only makes the name less durable.
	if directory, err := os.Open(filepath.Dir(f.name)); err == nil {
		_ = directory.Sync()
		directory.Close()
	}
	return f.part.Close()
}

// Abort removes the file.
func (f *File) Abort(bool) error {
	return errors.Join(os.Remove(f.part.Name()), f.part.Close())
}
