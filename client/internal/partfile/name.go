package partfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrExists is the error of a name that has a file, which is to stay.
var ErrExists = errors.New("the file exists: give another name or remove it")

// CheckName returns an error if the name may be that of another download's
// part or state. Case does not tell names apart on every file system.
func CheckName(name string) error {
	for _, ending := range []string{".part", ".part.state", ".part.state.new"} {
		if strings.HasSuffix(strings.ToLower(filepath.Clean(name)), ending) {
			return fmt.Errorf("%q ends in %s, as files of unfinished downloads do: give another name", name, ending)
		}
	}
	return nil
}

// CheckFree returns an error unless a file can get the name without taking it
// from another one.
func CheckFree(name string) error {
	_, err := os.Lstat(name)
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", name, ErrExists)
	case errors.Is(err, os.ErrNotExist):
		return nil
	}
	return err
}

// give gives the file called from the name to. It fails with ErrExists if that
// is taken, however late.
func give(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		err = giveLink(from, to) // as on NFS and some FUSE
	case err != nil:
		err = &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%s: %w", to, ErrExists)
	}
	return err
}

// giveLink is give where no file system call renames without replacing.
func giveLink(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, os.ErrExist):
		return err
	}
	return giveReserved(from, to)
}

// giveReserved is give where there are no links either, as on the shared
// storage of phones. An empty file takes the name and is replaced; only what
// somebody writes into that would be lost.
func giveReserved(from, to string) error {
	reserved, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = reserved.Close()
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}
