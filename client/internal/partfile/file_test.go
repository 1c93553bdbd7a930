package partfile

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

func TestCommitGivesTheFileItsName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	testkit.OK(t, os.WriteFile(name, []byte("the version before"), 0o600))
	f := create(t, Options{Name: name})
	testkit.OK(t, f.part.allocate(6))
	for offset, text := range map[quantity.Bytes]string{3: "def", 0: "abc"} {
		writeAt(t, f, []byte(text), int64(offset))
	}
	if before, err := os.ReadFile(name); err != nil || string(before) != "the version before" {
		t.Errorf("before the commit %s holds %q (%v)", name, before, err)
	}
	if sum, err := f.Commit(); err != nil || [32]byte(sum) != sha256.Sum256([]byte("abcdef")) {
		t.Fatalf("Commit() = %x, %v", sum, err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "abcdef" {
		t.Errorf("%s holds %q (%v), want abcdef", name, text, err)
	}
	expectNames(t, name, "file")
}

// A file that only its owner may read stays so, from the first byte on.
func TestAFileThatReplacesAnotherHasItsPermissions(t *testing.T) {
	for _, mode := range []os.FileMode{0o600, 0o604, 0o440, 0o666, 0o755} {
		name := filepath.Join(t.TempDir(), "file")
		testkit.OK(t, errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, mode)))
		f := create(t, Options{Name: name})
		if info, err := f.part.file.Stat(); err != nil || info.Mode().Perm()&^(mode|0o600) != 0 {
			t.Errorf("the part of a file of mode %04o has %v (%v)", mode, info.Mode(), err)
		}
		commit(t, f)
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("a file of mode %04o has %v afterwards (%v)", mode, info.Mode(), err)
		}
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f := create(t, Options{Name: name})
	abort(t, f, true)
	expectNames(t, name)
}

func TestTwoDownloadsDoNotShareAPart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	first := create(t, Options{Name: name})
	writeAt(t, first, []byte("first"), 0)
	if _, err := Create(Options{Name: name}); err == nil || !strings.Contains(err.Error(), "another download") {
		t.Errorf("a second Create returns %v", err)
	}
	commit(t, first)
	second := create(t, Options{Name: name})
	defer second.Abort(true)
	if text, _ := os.ReadFile(name); string(text) != "first" {
		t.Errorf("the finished file holds %q", text)
	}
}

// A download whose NAME.part was taken over does not touch it or its state any more.
func TestThePartOfAnotherDownloadIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		begun, fails bool
		end          func(*File) error
	}{
		"commit":             {true, true, func(f *File) error { _, err := f.Commit(); return err }},
		"abort":              {true, true, func(f *File) error { return f.Abort(false) }},
		"abort, distrusted":  {true, false, func(f *File) error { return f.Abort(true) }},
		"abort, not begun":   {false, false, func(f *File) error { return f.Abort(false) }},
		"checkpoint, commit": {true, true, func(f *File) error { f.record.checkpoint(f.record.snapshot()); _, err := f.Commit(); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
			first := create(t, o)
			if test.begun {
				if _, err := first.Begin(resource, ranges.Range{Length: resource.Size}); err != nil {
					t.Fatal(err)
				}
				writeAt(t, first, make([]byte, 1000), 0)
			}
			testkit.OK(t, os.Remove(o.Name+".part"))
			second, _ := begin(t, o, resource)

			err := test.end(first)
			testkit.Holds(t, test.fails == (err != nil) && (err == nil || err.Error() == o.Name+".part was removed or replaced during the download"), err)
			expectNames(t, o.Name, "file.part")
			text := strings.Repeat("second....", 100)
			writeAt(t, second, []byte(text), 0)
			commit(t, second)
			if got, err := os.ReadFile(o.Name); string(got) != text {
				t.Errorf("the file is not that of the second download (%v)", err)
			}
		})
	}
}

func TestCreateRefusesWhatCanNotBeWritten(t *testing.T) {
	directory := t.TempDir()
	if _, err := Create(Options{Name: filepath.Join(directory, "no", "file")}); err == nil {
		t.Error("Create in a directory that does not exist succeeds")
	}
}

// A browser may have left NAME.part. It stays, unless the user wants to begin anew.
func TestThePartOfAnotherProgramStays(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	testkit.OK(t, os.WriteFile(name+".part", []byte("a browser's"), 0o600))
	for _, resume := range []bool{true, false} {
		f := create(t, Options{Name: name, Resume: resume})
		_, err := f.Begin(transport.Resource{Size: 3}, ranges.Range{Length: 3})
		testkit.Same(t, (err != nil), resume)
		abort(t, f, false)
		if text, err := os.ReadFile(name + ".part"); resume && string(text) != "a browser's" || !resume && !os.IsNotExist(err) {
			t.Errorf("resume %t: the part holds %q, %v", resume, text, err)
		}
	}
}
