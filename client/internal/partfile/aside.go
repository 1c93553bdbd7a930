package partfile

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ownfile"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// An earlier part that does not match what the server has now is set aside as NAME.part.old
// until the new file is complete. If no part of the new file can be kept, the earlier part
// gets its name back.

// The ending .older marks one of two parts for the moment in which they swap names.
const (
	asideEnding = ".old"
	swapEnding  = ".older"
)

// aside is the part that is set aside.
type aside struct {
	// part is the part in use.
	part *part
	// exists is true if there is a part that is set aside.
	exists bool
	// log may be nil.
	log *slog.Logger
}

func (a *aside) name() string { return a.part.name() + asideEnding }

// stateOf returns the name of a part's state.
func stateOf(part string) string { return part + ".state" }

// found returns the state of a part from an earlier download. ok is false without the part.
func found(part string) (s state, ok bool) {
	s, err := readState(stateOf(part))
	if err != nil {
		return state{}, false
	}
	file, err := ownfile.Open(part)
	if err != nil {
		return state{}, false
	}
	defer file.Close()
	info, err := file.Stat()
	return s, err == nil && info.Size() == s.Size
}

// proven returns how many bytes a state lists as written.
func (s state) proven() (bytes int64) {
	for _, r := range s.Written {
		bytes += r[1]
	}
	return bytes
}

// Fits reports whether a part from an earlier download belongs to the resource.
func (f *File) Fits(resource transport.Resource) bool {
	for _, name := range []string{f.part.name(), f.aside.name()} {
		if s, ok := found(name); ok && f.fits(s, resource) {
			return true
		}
	}
	return false
}

// resume finds the part to continue, and returns its ranges. It sets any other part aside.
func (f *File) resume(resource transport.Resource) ([]ranges.Range, error) {
	here, isHere := found(f.part.name())
	old, isOld := found(f.aside.name())
	f.aside.exists = isOld
	if isHere && f.fits(here, resource) {
		if have := f.continueWith(here); have != nil {
			return have, nil
		}
	} else if isOld && f.fits(old, resource) {
		if err := f.aside.exchange(here, isHere, old); err != nil {
			return nil, err
		}
		if have := f.continueWith(old); have != nil {
			return have, nil
		}
		here, isHere = old, true
		old, isOld = found(f.aside.name())
	}
	info, err := f.part.file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() == 0:
		return nil, f.part.clear()
	case isOld && old.proven() >= here.proven():
		// If two parts match nothing, the one with more bytes stays.
		return nil, f.part.clear()
	}
	if !isHere {
		here = state{Format: stateFormat, Size: info.Size(), Written: [][2]int64{}}
	}
	return nil, f.aside.set(here)
}

// set gives NAME.part its other name, and begins an empty NAME.part.
func (a *aside) set(here state) error {
	if a.exists {
		if err := a.drop(); err != nil {
			return err
		}
	}
	if err := move(a.part.name(), a.name(), here); err != nil {
		return fmt.Errorf("set %s aside: %w", a.part.name(), err)
	}
	a.exists = true
	a.tell("the part that an earlier call left is not of this file: it is set aside until this one is whole", a.name())
	return a.part.reopen()
}

// exchange continues the part that was set aside. It sets NAME.part aside unless that is empty.
func (a *aside) exchange(here state, isHere bool, old state) error {
	name, other := a.part.name(), a.part.name()+swapEnding
	info, err := a.part.file.Stat()
	if err != nil {
		return err
	}
	isEmpty := info.Size() == 0
	if !isHere {
		here = state{Format: stateFormat, Size: info.Size(), Written: [][2]int64{}}
	}
	if isEmpty {
		err = a.part.remove()
	} else {
		err = move(name, other, here)
	}
	if err != nil {
		return err
	}
	if err := move(a.name(), name, old); err != nil {
		return err
	}
	if a.exists = !isEmpty; a.exists {
		if err := move(other, a.name(), here); err != nil {
			return err
		}
	}
	a.tell("the part that was set aside is of this file: it goes on", name)
	return a.part.reopen()
}

// restore gives the part that was set aside its name back.
func (a *aside) restore() error {
	old, ok := found(a.name())
	if !ok {
		return nil
	}
	return move(a.name(), a.part.name(), old)
}

// drop removes the part that was set aside.
func (a *aside) drop() error {
	a.exists = false
	// The part goes first: a part without a state could belong to another program, and would stay.
	return errors.Join(unlink(a.name()), unlink(stateOf(a.name())))
}

// move renames a part with its state. The new name must be free. Even if the process is
// killed meanwhile, no state describes another part: a state without a part counts as none.
func move(from, to string, s state) error {
	if err := checkFree(to); err != nil {
		return err
	}
	if err := s.write(stateOf(to)); err != nil {
		return err
	}
	if err := renameNew(from, to); err != nil {
		return errors.Join(err, unlink(stateOf(to)))
	}
	return unlink(stateOf(from))
}

// unlink removes a file if it exists.
func unlink(name string) error {
	err := unix.Unlink(name)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "remove", Path: name, Err: err}
}

// tell logs what happened to a part.
func (a *aside) tell(what, name string) {
	if a.log != nil {
		a.log.Warn(what, "part", name)
	}
}
