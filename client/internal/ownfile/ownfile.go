// Package ownfile opens files that only this user owns. It is for directories in which others
// can put files and symbolic links: a name there may lead to another file of the user, or to a
// file that another user can change.
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

// OpenOrCreate opens a file for reading and writing. If it does not exist, it is created with
// the mode, before umask.
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

// Create creates an empty file for writing with the mode, before umask. It replaces only a file
// of the user, or a symbolic link, such as a killed process leaves.
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

// open opens an existing file. It does not wait for the other end of a FIFO.
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

// check returns an error unless the file is a regular file of this user without another name.
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

// givenOwner returns the owner of a new file in the directory. Some file systems give all files
// the same owner, and not this user: FAT, FUSE on phones, NFS with squashing, hostfs.
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
