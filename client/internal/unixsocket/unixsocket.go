// Package unixsocket listens on UNIX sockets of this user alone, and connects to them.
package unixsocket

import (
	"context"
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

// Dial connects to the socket at path. The listener must belong to this user or root: another user
// would learn what is sent.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn.(*net.UnixConn)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return conn, nil
}

func checkPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var peerErr error
	if err := raw.Control(func(fd uintptr) {
		peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if peerErr != nil {
		return fmt.Errorf("who listens: %w", peerErr)
	}
	if int(peer.Uid) != os.Geteuid() && peer.Uid != 0 {
		return fmt.Errorf("another user (%d) listens there: give another path", peer.Uid)
	}
	return nil
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
