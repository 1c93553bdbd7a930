package partfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/ownfile"
	"github.com/linklab/linklab/client/internal/quantity"
)

// part is the file NAME.part, locked for this process.
type part struct {
	file *os.File
	// flush is file.Sync.
	flush func() error
}

// openPart opens and locks the file. If there is none, it creates one with the mode, before umask.
func openPart(name string, mode os.FileMode) (*part, error) {
	for {
		file, err := ownfile.OpenOrCreate(name, mode)
		if err != nil {
			return nil, err
		}
		current, err := lock(file)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		if !current {
			file.Close()
			continue
		}
		return &part{file, file.Sync}, nil
	}
}

func (p *part) name() string { return p.file.Name() }

func (p *part) stateName() string { return stateOf(p.name()) }

// owned returns an error if NAME.part is no longer the file of this download. Another
// download's part must not be renamed or removed, and no state may describe it.
func (p *part) owned() error {
	current, err := hasName(p.file)
	if err == nil && !current {
		err = fmt.Errorf("%s was removed or replaced during the download", p.name())
	}
	return err
}

// clear empties the part. It removes the state first: a state must never list missing bytes.
func (p *part) clear() error {
	if err := unlink(p.stateName()); err != nil {
		return err
	}
	return p.file.Truncate(0)
}

// allocate reserves size bytes, so that a full disk is noticed before the download.
func (p *part) allocate(size quantity.Bytes) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(p.file.Fd()), 0, 0, int64(size))
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = p.file.Truncate(int64(size))
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes for %s: %w", size, p.name(), err)
	}
	return nil
}

// sha256 reads the file back and returns its checksum.
func (p *part) sha256() ([sha256.Size]byte, error) {
	hash := sha256.New()
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return [sha256.Size]byte{}, err
	}
	if _, err := io.CopyBuffer(hash, struct{ io.Reader }{p.file}, make([]byte, 256<<10)); err != nil {
		return [sha256.Size]byte{}, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// remove removes the files of this download.
func (p *part) remove() error {
	if p.owned() != nil {
		return nil
	}
	// The state goes first, because it must never list missing bytes.
	return errors.Join(unlink(p.stateName()), unlink(p.name()))
}

// leave keeps what an earlier download has left.
func (p *part) leave() error {
	_, stateErr := os.Lstat(p.stateName())
	info, err := p.file.Stat()
	if err == nil && stateErr != nil && info.Size() == 0 {
		err = p.remove()
	}
	return err
}
