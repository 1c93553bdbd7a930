package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ownfile"
	"github.com/linklab/linklab/client/internal/plainfile"
	"github.com/linklab/linklab/client/internal/quota"
)

// stateFormat is the version of state.json.
const stateFormat = 1

// state is the content of state.json.
type state struct {
	Format int `json:"format"`
	// LastID is the highest ID so far.
	LastID    int                    `json:"last_id"`
	Downloads []Download             `json:"downloads"`
	Links     map[string]quota.Usage `json:"links"`
}

// store keeps the state in a directory, which one daemon at a time owns.
type store struct {
	path string
	lock *os.File
}

// openStore makes the directory if necessary, and reads its state.
func openStore(directory string) (*store, state, error) {
	empty := state{Format: stateFormat}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, empty, fmt.Errorf("state directory: %w", err)
	}
	lock, err := ownfile.OpenOrCreate(filepath.Join(directory, "lock"), 0o600)
	if err != nil {
		return nil, empty, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another daemon uses it")
		}
		return nil, empty, fmt.Errorf("state directory %s: %w", directory, err)
	}
	s := &store{path: filepath.Join(directory, "state.json"), lock: lock}
	kept, err := s.read()
	if err != nil {
		lock.Close()
		return nil, empty, err
	}
	return s, kept, nil
}

func (s *store) read() (kept state, err error) {
	file, err := ownfile.Open(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return state{Format: stateFormat}, nil
	}
	if err != nil {
		return kept, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return kept, err
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return kept, fmt.Errorf("%s: %w: repair or remove it", s.path, err)
	}
	if kept.Format != stateFormat {
		return kept, fmt.Errorf("%s: it has format %d, this version reads %d: remove it or use the version that wrote it", s.path, kept.Format, stateFormat)
	}
	return kept, nil
}

// write replaces the file. A crash leaves either the old or the new file.
func (s *store) write(kept state) error {
	text, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(s.path), "state.*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(text, '\n'))
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = plainfile.Rename(temporary.Name(), s.path)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}

func (s *store) close() { s.lock.Close() }
