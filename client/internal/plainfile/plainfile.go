// Package plainfile is the rule for files that a user names. Output becomes a plain file, or goes
// in order into a pipe, a character device, or a file that the process has open. Input may be a
// pipe or character device if it is read once, else only a plain file. Only a plain file is ever
// replaced. linklab has the same rule (core/whole_file.py). testdata/rule.json tests both.
package plainfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// safely opens a file without waiting for the other end of a pipe, and without making a terminal
// the controlling terminal.
const safely = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// readPatience is how long the other end of a pipe may send nothing.
const readPatience = 10 * time.Second

// readerInterval is the interval between checks whether a pipe has a reader.
const readerInterval = 20 * time.Millisecond

// Open opens a plain file for reading. It follows symbolic links.
func Open(name string) (*os.File, error) {
	return open(name, 0, "a plain file")
}

// Read returns the content of a file, at most that many bytes.
func Read(name string, most int) ([]byte, error) {
	file, err := open(name, os.ModeNamedPipe|os.ModeCharDevice, "a plain file, a pipe and a character device")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return all(file, name, most)
}

// all returns the content of a file.
func all(file *os.File, name string, most int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(patient{file}, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return text, err
}

// ReadSecret returns the content of a file, at most that many bytes. The file must belong to this
// user, and nobody else may read it.
func ReadSecret(name string, most int) ([]byte, error) {
	file, err := open(name, os.ModeNamedPipe|os.ModeCharDevice, "a plain file, a pipe and a character device")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var status unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &status); err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: err}
	}
	switch {
	case int(status.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s is not used, because it belongs to another user (%d)", name, status.Uid)
	case status.Mode&0o077 != 0:
		return nil, fmt.Errorf("%s is not used, because others may read or change it (mode %04o): chmod 600 it", name, status.Mode&0o777)
	}
	return all(file, name, most)
}

// patient is a file whose read fails after readPatience. A signal would not end a read.
type patient struct{ *os.File }

func (p patient) Read(into []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(readPatience)) // A plain file has no deadline.
	n, err := p.File.Read(into)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: nothing came from it for %v", p.Name(), readPatience)
	}
	return n, err
}

// open opens a plain file, or a file of one of the types, for reading.
func open(name string, types os.FileMode, allowed string) (*os.File, error) {
	found, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0) // O_PATH does not affect a device.
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(found)
	mode, err := modeOf(found, name)
	if err != nil {
		return nil, err
	}
	if !mode.IsRegular() && mode&types == 0 {
		return nil, fmt.Errorf("%s is %s: allowed is %s", name, what(mode), allowed)
	}
	own, err := unix.Open("/proc/self/fd/"+strconv.Itoa(found), unix.O_RDONLY|safely, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(own), name), nil
}

// what describes the type of a file.
func what(mode os.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	case mode&os.ModeCharDevice != 0:
		return "a character device"
	case mode&os.ModeDevice != 0:
		return "a block device"
	}
	return "no file"
}

// checkReplaceable returns an error if the name leads to anything but a plain file. The name may be
// free.
func checkReplaceable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil: // Or a symbolic link to nothing, which is replaced itself.
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a directory: a file name is needed", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is %s, which is not replaced: allowed is a plain file", name, what(info.Mode()))
	}
	return nil
}

// Rename renames a file. The new name must belong to a plain file or to none.
func Rename(from, to string) error {
	if err := checkReplaceable(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// Into opens a pipe or character device for writing, or a file that this process has open, such as
// /dev/stdout. It returns nil if the name is free or belongs to a plain file: the caller then
// makes a file. It waits for the reader of a pipe until ctx ends.
func Into(ctx context.Context, name string) (*os.File, error) {
	// O_PATH does not affect the file. The descriptor keeps leading to the same file until it
	// is opened for writing.
	found, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil // The caller makes the file and gets the error.
	}
	defer unix.Close(found)
	if descriptor, ok := ownDescriptor(name); ok {
		return ofDescriptor(descriptor, name)
	}
	mode, err := modeOf(found, name)
	switch {
	case err != nil:
		return nil, err
	case mode.IsDir():
		return nil, fmt.Errorf("%s is a directory: a file name is needed", name)
	case mode.IsRegular():
		return nil, nil
	case mode&os.ModeNamedPipe == 0 && mode&os.ModeCharDevice == 0:
		return nil, refused(name, mode)
	}
	return written(ctx, found, name)
}

// Again opens what a file of this process leads to, for writing if Into would.
func Again(file *os.File, name string) (again *os.File, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	if controlErr := raw.Control(func(fd uintptr) { again, err = ofDescriptor(int(fd), name) }); controlErr != nil {
		return nil, controlErr
	}
	return again, err
}

// ofDescriptor opens what a descriptor of this process leads to.
func ofDescriptor(descriptor int, name string) (*os.File, error) {
	mode, err := modeOf(descriptor, name)
	if err != nil {
		return nil, err
	}
	flags, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFL, 0)
	switch {
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	case flags&unix.O_ACCMODE == unix.O_RDONLY:
		return nil, fmt.Errorf("%s is not open for writing", name)
	case mode&(os.ModeIrregular|os.ModeDir) != 0:
		return nil, refused(name, mode)
	}
	if mode&os.ModeNamedPipe != 0 {
		// A new open file can be closed while its reader is slow.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if file, err := written(ctx, descriptor, name); err == nil {
			return file, nil
		}
	}
	own, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fileOf(own, name)
}

// written opens what a descriptor leads to for writing. It waits for the reader of a pipe until
// ctx ends.
func written(ctx context.Context, descriptor int, name string) (*os.File, error) {
	for {
		into, err := unix.Open("/proc/self/fd/"+strconv.Itoa(descriptor), unix.O_WRONLY|safely, 0)
		if err == nil {
			var mode os.FileMode
			if mode, err = modeOf(into, name); err == nil && mode&os.ModeNamedPipe == 0 {
				// A device may not announce that it can take more.
				err = unix.SetNonblock(into, false)
			}
			if err != nil {
				unix.Close(into)
				return nil, err
			}
			return fileOf(into, name)
		}
		if !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.EINTR) {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: nobody reads from it: %w", name, context.Cause(ctx))
		case <-time.After(readerInterval):
		}
	}
}

// fileOf returns the file of a descriptor. It closes and refuses a terminal, which the content
// could control.
func fileOf(descriptor int, name string) (*os.File, error) {
	if term.IsTerminal(descriptor) {
		unix.Close(descriptor)
		return nil, fmt.Errorf("%s is a terminal: allowed are a file, a pipe and a device that is no terminal", name)
	}
	return os.NewFile(uintptr(descriptor), name), nil
}

func refused(name string, mode os.FileMode) error {
	return fmt.Errorf("%s is %s: allowed are a plain file, a pipe and a character device", name, what(mode))
}

func modeOf(descriptor int, name string) (os.FileMode, error) {
	var status unix.Stat_t
	if err := unix.Fstat(descriptor, &status); err != nil {
		return 0, &os.PathError{Op: "open", Path: name, Err: err}
	}
	switch status.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0, nil
	case unix.S_IFDIR:
		return os.ModeDir, nil
	case unix.S_IFIFO:
		return os.ModeNamedPipe, nil
	case unix.S_IFCHR:
		return os.ModeDevice | os.ModeCharDevice, nil
	case unix.S_IFBLK:
		return os.ModeDevice, nil
	case unix.S_IFSOCK:
		return os.ModeSocket, nil
	}
	return os.ModeIrregular, nil
}

// ownFiles matches the directory of the descriptors of this process, or of one of its threads.
var ownFiles = regexp.MustCompile(`^/proc/` + strconv.Itoa(os.Getpid()) + `(/task/\d+)?/fd$`)

// mostLinks limits how many symbolic links are followed, as in the kernel.
const mostLinks = 40

// ownDescriptor returns the descriptor to which a name such as /dev/stdout leads.
func ownDescriptor(name string) (descriptor int, ok bool) {
	for range mostLinks {
		directory, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return 0, false
		}
		if directory, err = filepath.Abs(directory); err != nil {
			return 0, false
		}
		if ownFiles.MatchString(directory) {
			descriptor, err := strconv.Atoi(filepath.Base(name))
			return descriptor, err == nil
		}
		to, err := os.Readlink(name)
		if err != nil {
			return 0, false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(directory, to)
		}
		name = to
	}
	return 0, false
}
