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
