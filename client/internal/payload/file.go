// Package payload writes the downloaded file.
package payload

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// File is a download that has not got its name yet: NAME.part, which becomes
// NAME only when it is whole.
type File struct {
	name string
	part *os.File
}

// Create opens name.part for writing, or returns an error if that can not
// become name or if another process is writing it.
func Create(name string) (*File, error) {
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
		return &File{name: name, part: part}, nil
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

// Allocate reserves size bytes, so that a full disk is known before the
// download.
func (f *File) Allocate(size int64) error {
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

// SHA256 reads the file back and returns its checksum.
func (f *File) SHA256() ([sha256.Size]byte, error) {
	hash := sha256.New()
	if _, err := f.part.Seek(0, io.SeekStart); err != nil {
		return [sha256.Size]byte{}, err
	}
	if _, err := io.CopyBuffer(hash, struct{ io.Reader }{f.part}, make([]byte, 256<<10)); err != nil {
		return [sha256.Size]byte{}, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// Commit makes the file durable and gives it its name.
func (f *File) Commit() error {
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

// Discard removes the file.
func (f *File) Discard() error {
	return errors.Join(os.Remove(f.part.Name()), f.part.Close())
}
