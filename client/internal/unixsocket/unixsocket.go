// Package unixsocket listens on UNIX sockets of this user alone.
package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ownfile"
)

// Listen listens on a socket at path with mode 0600. It replaces the socket of a killed process. It
// refuses to replace a socket that answers, or a file that is no socket. Closing the listener
// removes the socket.
func Listen(path string) (net.Listener, error) {
	unlock, err := lock(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// umask sets the mode at creation, so at no moment another user can connect.
	previous := unix.Umask(0o177)
	defer unix.Umask(previous)
	return net.Listen("unix", path)
}

// lock lets one process at a time check and replace a stale socket at path.
func lock(path string) (unlock func(), err error) {
	name := path + ".lock"
	for {
		file, err := ownfile.OpenOrCreate(name, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		// The process that had the lock before may have removed the file.
		opened, openedErr := file.Stat()
		named, namedErr := os.Lstat(name)
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
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("another process listens on %s", path)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("another process listens on %s, and is busy", path)
	case !errors.Is(err, unix.ECONNREFUSED):
		return err
	}
	return os.Remove(path)
}
