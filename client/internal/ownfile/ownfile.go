// Package ownfile opens files that are this user's alone, in directories in
// which others may put files and links too: there a name may lead to another
// file of the user's, or to one that somebody else can change.
package ownfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open opens a file for reading.
func Open(name string) (*os.File, error) { return open(name, os.O_RDONLY) }

// OpenOrCreate opens a file for reading and writing. If there is none it
// creates one with the mode, before umask.
func OpenOrCreate(name string, mode os.FileMode) (*os.File, error) {
	for {
		file, err := open(name, os.O_RDWR)
		if !errors.Is(err, os.ErrNotExist) {
			return file, err
		}
		file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, os.ErrExist) {
			return file, err
		}
	}
}

// Create creates an empty file for writing with the mode, before umask. It
// replaces a file of the user's, or a link, that a killed process left, and
// nothing else.
func Create(name string, mode os.FileMode) (*os.File, error) {
	for {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, os.ErrExist) {
			return file, err
		}
		if info, err := os.Lstat(name); err == nil && info.Mode().Type()&(os.ModeNamedPipe|os.ModeSocket|os.ModeDevice) != 0 {
			return nil, refuse(name, "it is no regular file")
		}
		if err := unix.Unlink(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, &os.PathError{Op: "replace", Path: name, Err: err}
		}
	}
}

// open opens a file that exists. It does not wait for the other end of a FIFO.
func open(name string, flag int) (*os.File, error) {
	file, err := os.OpenFile(name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, refuse(name, "it is a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	if err := check(file); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// check returns an error unless the file is a regular one of this user's that
// has no other name.
func check(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	stat := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return refuse(file.Name(), "it is no regular file")
	case stat.Nlink > 1:
		return refuse(file.Name(), "it is the same file as another one (a hard link)")
	case int(stat.Uid) == os.Geteuid():
		return nil
	}
	given, err := givenOwner(filepath.Dir(file.Name()))
	if err == nil && given != stat.Uid {
		err = refuse(file.Name(), fmt.Sprintf("it belongs to another user (%d)", stat.Uid))
	}
	return err
}

// givenOwner is whom a new file in the directory belongs to. Some file systems
// name another user than the one who creates it, and the same for all: FAT,
// FUSE on phones, NFS that squashes, hostfs.
func givenOwner(directory string) (uint32, error) {
	file, err := os.CreateTemp(directory, ".multilink-owner-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Uid, nil
}

func refuse(name, reason string) error {
	return fmt.Errorf("%s is not used, because %s: remove it, or give another name", name, reason)
}
