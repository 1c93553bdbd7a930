package partfile

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// errExists means that a file with this name exists and must stay.
var errExists = errors.New("the file exists: give another name or remove it")

// CheckName returns an error if the name may belong to another download's part or state. It
// ignores case, because some file systems do.
func CheckName(name string) error {
	for _, ending := range []string{".part", stateOf(".part"), stateOf(".part") + ".new"} {
		if strings.HasSuffix(strings.ToLower(filepath.Clean(name)), ending) {
			return fmt.Errorf("%q ends in %s, as files of unfinished downloads do: give another name", name, ending)
		}
	}
	return nil
}

const (
	// longestEnding is the longest ending of a part or state.
	longestEnding = ".part.state.new"
	// shortNames is how many bytes every file system allows in a name (eCryptfs).
	shortNames = 143
	// hashedBytes is how many bytes of its hash replace the end of a long name.
	hashedBytes = 4
)

// nameOfPart returns NAME.part. If NAME is too long for the endings, its end is replaced by a
// hash of it. The same name always gets the same part.
func nameOfPart(name string) (string, error) {
	directory, base := filepath.Split(name)
	most := shortNames
	if len(base)+len(longestEnding) > most {
		var system unix.Statfs_t
		if err := unix.Statfs(cmp.Or(directory, "."), &system); err == nil && system.Namelen > 0 {
			most = int(system.Namelen)
		}
		if _, err := os.Lstat(name); errors.Is(err, unix.ENAMETOOLONG) {
			return "", fmt.Errorf("the file name has %d bytes: allowed are %d. Give another name", len(base), most)
		}
	}
	if cut := len(base) + len(longestEnding) - most; cut > 0 {
		sum := sha256.Sum256([]byte(base))
		end := len(base) - cut - 2*hashedBytes - 1
		for end > 0 && !utf8.RuneStart(base[end]) {
			end--
		}
		base = fmt.Sprintf("%s~%x", base[:max(0, end)], sum[:hashedBytes])
	}
	return directory + base + ".part", nil
}

// checkFree returns an error unless a file can get the name without replacing another one.
func checkFree(name string) error {
	_, err := os.Lstat(name)
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", name, errExists)
	case errors.Is(err, os.ErrNotExist):
		return nil
	}
	return err
}

// renameNew renames a file. It fails with errExists if the new name is taken, even at the last
// moment.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		err = renameByLink(from, to) // As on NFS and some FUSE file systems.
	case err != nil:
		err = &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%s: %w", to, errExists)
	}
	return err
}

// renameByLink is renameNew for file systems that cannot rename without replacing.
func renameByLink(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, os.ErrExist):
		return err
	}
	return renameByReserving(from, to)
}

// renameByReserving is renameNew for file systems without links, too, such as the shared storage of
// phones. An empty file reserves the name and is then replaced. What another program writes
// into this file meanwhile is lost.
func renameByReserving(from, to string) error {
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
