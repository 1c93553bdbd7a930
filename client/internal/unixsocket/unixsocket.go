// Package unixsocket listens on UNIX sockets that belong to the user alone.
package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Listen listens on a socket at path with mode 0600. It replaces a socket
// that a killed process left, and refuses to replace one that answers or
// anything that is no socket. The socket is removed when the listener is
// closed.
func Listen(path string) (net.Listener, error) {
	unlock, err := lock(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The socket is created with its mode: there is no moment in which
	// another user can connect.
	previous := unix.Umask(0o177)
	defer unix.Umask(previous)
	return net.Listen("unix", path)
}

// lock lets one process at a time look for a stale socket at path and replace
// it.
func lock(path string) (unlock func(), err error) {
	name := path + ".lock"
	for {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		// The process that had the lock before removed the file.
		opened, openedErr := file.Stat()
		named, namedErr := os.Stat(name)
		if openedErr != nil || namedErr != nil || !os.SameFile(opened, named) {
			file.Close()
			continue
		}
		return func() {
			os.Remove(name)
			file.Close()
		}, nil
	}
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s exists and is no socket: give another path", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return fmt.Errorf("another process listens on %s", path)
	}
	return os.Remove(path)
}
