package partfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ownfile"
	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

// stateFormat is the version of the format of state files.
const stateFormat = 1

// state is the content of NAME.part.state: the resource, and which bytes of NAME.part are on
// the disk. The file has two lines, the JSON of a state and the SHA-256 of that line. It
// replaces the older file atomically, after the bytes it lists have been synced.
type state struct {
	Format       int    `json:"format"`
	URL          string `json:"url"`
	Size         int64  `json:"size_bytes"`
	ETag         string `json:"etag"`
	LastModified string `json:"last_modified"`
	// Checksum is the SHA-256 from the user in hexadecimal, if given.
	Checksum string `json:"checksum,omitempty"`
	// Written holds the offset and length of each range, in ascending order.
	Written [][2]int64 `json:"written"`
}

func newState(url string, resource transport.Resource, written []ranges.Range) state {
	s := state{
		Format:       stateFormat,
		URL:          url,
		Size:         int64(resource.Size),
		ETag:         resource.ETag,
		LastModified: resource.LastModified,
		Written:      [][2]int64{},
	}
	for _, r := range written {
		s.Written = append(s.Written, [2]int64{int64(r.Offset), int64(r.Length)})
	}
	return s
}

// ranges returns the ranges that are on the disk.
func (s state) ranges() (written []ranges.Range) {
	for _, r := range s.Written {
		written = append(written, ranges.Range{Offset: quantity.Bytes(r[0]), Length: quantity.Bytes(r[1])})
	}
	return written
}

func (s state) encode() ([]byte, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return signed(line), nil
}

// signed appends its checksum to a line.
func signed(line []byte) []byte {
	return fmt.Appendf(bytes.Clone(line), "\n%x\n", sha256.Sum256(line))
}

// parseState parses a state file. It accepts nothing else.
func parseState(text []byte) (s state, err error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	sum := sha256.Sum256(line)
	if string(rest) != hex.EncodeToString(sum[:])+"\n" {
		return state{}, errors.New("line 2 is not the SHA-256 of line 1")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return state{}, fmt.Errorf("line 1: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return state{}, errors.New("line 1: there is more than one value")
	}
	if s.Format != stateFormat {
		return state{}, fmt.Errorf("line 1: format %d: this version knows %d", s.Format, stateFormat)
	}
	if s.Size < 0 {
		return state{}, fmt.Errorf("line 1: %d bytes: allowed is 0 and more", s.Size)
	}
	end := int64(-1)
	for _, r := range s.Written {
		if r[0] <= end || r[1] <= 0 || r[0] > s.Size-r[1] {
			return state{}, fmt.Errorf("line 1: %v is empty, out of order or not inside of %d bytes", r, s.Size)
		}
		end = r[0] + r[1]
	}
	return s, nil
}

// readState reads the state file name.
func readState(name string) (state, error) {
	file, err := ownfile.Open(name)
	if err != nil {
		return state{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return state{}, err
	}
	s, err := parseState(text)
	if err != nil {
		return state{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// write replaces the state file name durably. Only the user may read it, because the query of
// a URL may hold secrets.
func (s state) write(name string) error {
	text, err := s.encode()
	if err != nil {
		return err
	}
	temporary := name + ".new"
	file, err := ownfile.Create(temporary, 0o600)
	if err != nil {
		return err
	}
	if err := writeSynced(file, text); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := plainfile.Rename(temporary, name); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	syncDirectory(name)
	return nil
}

// writeSynced writes text to the file, syncs and closes it.
func writeSynced(file *os.File, text []byte) error {
	_, err := file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDirectory makes the name of a file durable. Some file systems cannot sync a directory
// (hostfs, some FUSE); then the name is less durable.
func syncDirectory(name string) {
	if directory, err := os.Open(filepath.Dir(name)); err == nil {
		_ = directory.Sync()
		directory.Close()
	}
}

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

// unlink removes a file if it exists.
func unlink(name string) error {
	err := unix.Unlink(name)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "remove", Path: name, Err: err}
}
