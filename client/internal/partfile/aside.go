package partfile

import (
	"errors"
	"fmt"
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

func (f *File) asideName() string { return f.part.Name() + asideEnding }

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
	for _, name := range []string{f.part.Name(), f.asideName()} {
		if s, ok := found(name); ok && f.fits(s, resource) {
			return true
		}
	}
	return false
}

// resume finds the part to continue, and returns its ranges. It sets any other part aside.
func (f *File) resume() ([]ranges.Range, error) {
	here, isHere := found(f.part.Name())
	old, isOld := found(f.asideName())
	f.aside = isOld
	if isHere && f.fits(here, f.resource) {
		if have := f.continueWith(here); have != nil {
			return have, nil
		}
	} else if isOld && f.fits(old, f.resource) {
		if err := f.exchange(here, isHere, old); err != nil {
			return nil, err
		}
		if have := f.continueWith(old); have != nil {
			return have, nil
		}
		here, isHere = old, true
		old, isOld = found(f.asideName())
	}
	info, err := f.part.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() == 0:
		return nil, f.clear()
	case isOld && old.proven() >= here.proven():
		// If two parts match nothing, the one with more bytes stays.
		return nil, f.clear()
	}
	if !isHere {
		here = state{Format: stateFormat, Size: info.Size(), Written: [][2]int64{}}
	}
	return nil, f.setAside(here)
}

// setAside gives NAME.part its other name, and begins an empty NAME.part.
func (f *File) setAside(here state) error {
	if f.aside {
		if err := f.dropAside(); err != nil {
			return err
		}
	}
	if err := move(f.part.Name(), f.asideName(), here); err != nil {
		return fmt.Errorf("set %s aside: %w", f.part.Name(), err)
	}
	f.aside = true
	f.log("the part that an earlier call left is not of this file: it is set aside until this one is whole", f.asideName())
	return f.reopen()
}

// exchange continues the part that was set aside. It sets NAME.part aside unless that is empty.
func (f *File) exchange(here state, isHere bool, old state) error {
	name, other := f.part.Name(), f.part.Name()+swapEnding
	info, err := f.part.Stat()
	if err != nil {
		return err
	}
	isEmpty := info.Size() == 0
	if !isHere {
		here = state{Format: stateFormat, Size: info.Size(), Written: [][2]int64{}}
	}
	if isEmpty {
		err = f.remove()
	} else {
		err = move(name, other, here)
	}
	if err != nil {
		return err
	}
	if err := move(f.asideName(), name, old); err != nil {
		return err
	}
	if f.aside = !isEmpty; f.aside {
		if err := move(other, f.asideName(), here); err != nil {
			return err
		}
	}
	f.log("the part that was set aside is of this file: it goes on", name)
	return f.reopen()
}

// restore gives the part that was set aside its name back.
func (f *File) restore() error {
	old, ok := found(f.asideName())
	if !ok {
		return nil
	}
	return move(f.asideName(), f.part.Name(), old)
}

// dropAside removes the part that was set aside.
func (f *File) dropAside() error {
	f.aside = false
	// The part goes first: a part without a state could belong to another program, and would stay.
	return errors.Join(unlink(f.asideName()), unlink(stateOf(f.asideName())))
}

// move renames a part with its state. The new name must be free. Even if the process is
// killed meanwhile, no state describes another part: a state without a part counts as none.
func move(from, to string, s state) error {
	if err := CheckFree(to); err != nil {
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

// log logs what happened to a part.
func (f *File) log(what, name string) {
	if f.Log != nil {
		f.Log.Warn(what, "part", name)
	}
}
