package partfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
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
