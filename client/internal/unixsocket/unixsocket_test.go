package unixsocket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	first, err := Listen(path)
	testkit.OK(t, err)
	if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket's mode is %v (%v), want 0600", info.Mode(), err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process listens on "+path) {
		t.Errorf("a second listener: %v", err)
	}
	first.Close()
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 0 {
		t.Errorf("%v is left", entries)
	}
}

func TestListenReplacesTheSocketOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	killed, err := Listen(path)
	testkit.OK(t, err)
	killed.(*net.UnixListener).SetUnlinkOnClose(false)
	killed.Close()
	next, err := Listen(path)
	testkit.OK(t, err)
	next.Close()
}

func TestListenReplacesNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	testkit.OK(t, os.WriteFile(path, []byte("text"), 0o600))
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("listening on a file: %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "text" {
		t.Error("the file was replaced")
	}
}

func TestOneOfManyListens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	const many = 20
	listeners := make(chan net.Listener, many)
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			if l, err := Listen(path); err == nil {
				listeners <- l
			}
		})
	}
	wg.Wait()
	close(listeners)
	count := 0
	for l := range listeners {
		count++
		l.Close()
	}
	testkit.Same(t, count, 1, many)
}

// In a directory that others can write to, the lock must not lead to another file.
func TestAPlantedLockIsNotUsed(t *testing.T) {
	directory := t.TempDir()
	path, victim := filepath.Join(directory, "socket"), filepath.Join(directory, "victim")
	testkit.OK(t, os.Symlink(victim, path+".lock"))
	if l, err := Listen(path); err == nil || !strings.HasPrefix(err.Error(), path+".lock is not used, because it is a symbolic link") {
		t.Errorf("listening gives %v, %v", l, err)
	}
	if _, err := os.Lstat(victim); err == nil {
		t.Error("the file that the link leads to was created")
	}
}

// A socket with a full queue has a listener.
func TestABusySocketIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	var fds [2]int
	for i := range fds {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		testkit.OK(t, err)
		defer unix.Close(fd)
		fds[i] = fd
	}
	at := &unix.SockaddrUnix{Name: path}
	testkit.OK(t, errors.Join(unix.Bind(fds[0], at), unix.Listen(fds[0], 0), unix.Connect(fds[1], at)))
	if l, err := Listen(path); err == nil {
		l.Close()
		t.Error("a socket was replaced on which somebody listens")
	}
}
