package partfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ownfile"
)

// lock locks the file for this process. It returns false if another process renamed or removed
// the file meanwhile.
func lock(part *os.File) (current bool, err error) {
	err = unix.Flock(int(part.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, errors.New("another download is writing this file")
	case err != nil:
		return false, err
	}
	return hasName(part)
}

// hasName reports whether the name still leads to this file.
func hasName(part *os.File) (bool, error) {
	opened, err := part.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(part.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}

// owned returns an error if NAME.part is no longer the file of this download. Another
// download's part must not be renamed or removed, and no state may describe it.
func (f *File) owned() error {
	current, err := hasName(f.part)
	if err == nil && !current {
		err = fmt.Errorf("%s was removed or replaced during the download", f.part.Name())
	}
	return err
}

// reopen opens the file that is called NAME.part now.
func (f *File) reopen() error {
	part, err := ownfile.OpenOrCreate(f.part.Name(), 0o666)
	if err != nil {
		return err
	}
	current, err := lock(part)
	if err == nil && !current {
		err = errors.New("it was replaced")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", part.Name(), errors.Join(err, part.Close()))
	}
	f.part.Close()
	f.part, f.flush = part, part.Sync
	return nil
}
