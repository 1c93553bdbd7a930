package partfile

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
)

func TestCommitGivesTheFileItsName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("the version before"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.part.allocate(6); err != nil {
		t.Fatal(err)
	}
	for offset, text := range map[quantity.Bytes]string{3: "def", 0: "abc"} {
		if _, err := f.WriteAt([]byte(text), int64(offset)); err != nil {
			t.Fatal(err)
		}
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
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
		t.Errorf("%v is in the directory, want only the file", entries)
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := Create(Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Abort(true); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 0 {
		t.Errorf("%v is left", entries)
	}
}

func TestTwoDownloadsDoNotShareAPart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	first, err := Create(Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.WriteAt([]byte("first"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(Options{Name: name}); err == nil || !strings.Contains(err.Error(), "another download") {
		t.Errorf("a second Create returns %v", err)
	}
	if _, err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	second, err := Create(Options{Name: name})
	if err != nil {
		t.Fatalf("Create after the first download: %v", err)
	}
	defer second.Abort(true)
	if text, _ := os.ReadFile(name); string(text) != "first" {
		t.Errorf("the finished file holds %q", text)
	}
}

// The part of a killed process is overwritten.
func TestALeftoverPartIsUsed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name+".part", []byte("a longer leftover"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Begin(transport.Resource{Size: 3}, ranges.Range{Length: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(name); string(text) != "new" {
		t.Errorf("the file holds %q, want new", text)
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
			first, err := Create(o)
			if err != nil {
				t.Fatal(err)
			}
			if test.begun {
				if _, err := first.Begin(resource, ranges.Range{Length: resource.Size}); err != nil {
					t.Fatal(err)
				}
				if _, err := first.WriteAt(make([]byte, 1000), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(o.Name + ".part"); err != nil {
				t.Fatal(err)
			}
			second, err := Create(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := second.Begin(resource, ranges.Range{Length: resource.Size}); err != nil {
				t.Fatal(err)
			}

			err = test.end(first)
			if test.fails != (err != nil) || err != nil && err.Error() != o.Name+".part was removed or replaced during the download" {
				t.Errorf("the first download ends with %v", err)
			}
			if entries, _ := os.ReadDir(filepath.Dir(o.Name)); len(entries) != 1 || entries[0].Name() != "file.part" {
				t.Errorf("%v is in the directory, want the second download's part alone", entries)
			}
			text := strings.Repeat("second....", 100)
			if _, err := second.WriteAt([]byte(text), 0); err != nil {
				t.Fatal(err)
			}
			if _, err := second.Commit(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(o.Name); string(got) != text {
				t.Errorf("the file is not that of the second download (%v)", err)
			}
		})
	}
}

func TestAReplacedPartIsNotRenamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := Create(Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".other", []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".other", name+".part"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(); err == nil || !strings.Contains(err.Error(), "was removed or replaced") {
		t.Errorf("Commit returns %v", err)
	}
	if text, _ := os.ReadFile(name + ".part"); string(text) != "other" {
		t.Errorf("the other file holds %q", text)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("the other file got the name")
	}
}

func TestCreateRefusesWhatCanNotBeWritten(t *testing.T) {
	directory := t.TempDir()
	if _, err := Create(Options{Name: filepath.Join(directory, "no", "file")}); err == nil {
		t.Error("Create in a directory that does not exist succeeds")
	}
}

func TestAllocateRefusesMoreThanTheDiskHolds(t *testing.T) {
	f, err := Create(Options{Name: filepath.Join(t.TempDir(), "file")})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort(true)
	if err := f.part.allocate(1 << 60); err == nil || !strings.Contains(err.Error(), "reserve 1152921504606846976 bytes") {
		t.Errorf("allocate returns %v", err)
	}
}

// A browser may have left NAME.part. It stays, unless the user wants to begin anew.
func TestThePartOfAnotherProgramStays(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name+".part", []byte("a browser's"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, resume := range []bool{true, false} {
		f, err := Create(Options{Name: name, Resume: resume})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Begin(transport.Resource{Size: 3}, ranges.Range{Length: 3})
		if (err != nil) != resume {
			t.Errorf("resume %t: error %v", resume, err)
		}
		if err := f.Abort(false); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(name + ".part"); resume && string(text) != "a browser's" || !resume && !os.IsNotExist(err) {
			t.Errorf("resume %t: the part holds %q, %v", resume, text, err)
		}
	}
}
