package partfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/transport"
)

func TestNamesOfUnfinishedDownloadsAreRefused(t *testing.T) {
	for _, name := range []string{"x.part", "a/x.PART", "x.part.state", "x.part.state.new", ".part", "x.part/."} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), "as files of unfinished downloads do: give another name") {
			t.Errorf("CheckName(%q) returns %v", name, err)
		}
	}
	for _, name := range []string{"x", "x.part1", "part", "x.part/y", "x.state", "x.old"} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) returns %v", name, err)
		}
	}
}

// lacking lists system calls that some file systems do not support.
var lacking = map[string][]uint32{
	"all there is":        nil,
	"no rename of kind":   {unix.SYS_RENAMEAT2},
	"no hard link either": {unix.SYS_RENAMEAT2, unix.SYS_LINKAT},
}

// deny makes the kernel refuse system calls with EINVAL on this thread, like a file system
// without them.
func deny(calls []uint32) error {
	if len(calls) == 0 {
		return nil
	}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // The number of the call.
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: call})
	}
	const allow, refuse = 0x7fff0000, 0x00050000 // SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: allow},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: refuse | uint32(unix.EINVAL)})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

func TestNoFileLosesItsName(t *testing.T) {
	for what, calls := range lacking {
		t.Run(what, func(t *testing.T) {
			runtime.LockOSThread() // The thread ends with its filter.
			if err := deny(calls); err != nil {
				t.Skipf("the kernel filters no system calls: %v", err)
			}
			err := unix.Renameat2(unix.AT_FDCWD, "", unix.AT_FDCWD, "", unix.RENAME_NOREPLACE)
			if denied := errors.Is(err, unix.EINVAL); denied != (len(calls) > 0) {
				t.Fatalf("renameat2 returns %v", err)
			}
			if denied := errors.Is(os.Link("", ""), unix.EINVAL); denied != (len(calls) > 1) {
				t.Fatalf("link is denied: %t", denied)
			}
			directory := t.TempDir()
			from, to := filepath.Join(directory, "part"), filepath.Join(directory, "file")
			write := func(name, text string) {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
			expect := func(name, want string) {
				if text, err := os.ReadFile(name); string(text) != want {
					t.Errorf("%s holds %q (%v), want %q", name, text, err, want)
				}
			}
			write(from, "new")
			write(to, "saved meanwhile")
			if err := renameNew(from, to); !errors.Is(err, errExists) || err.Error() != to+": the file exists: give another name or remove it" {
				t.Errorf("with a file there the error is %v", err)
			}
			expect(from, "new")
			expect(to, "saved meanwhile")
			if err := errors.Join(os.Remove(to), os.Symlink("nowhere", to)); err != nil {
				t.Error(err)
			}
			if err := renameNew(from, to); !errors.Is(err, errExists) {
				t.Errorf("with a dangling link there the error is %v", err)
			}
			if err := os.Remove(to); err != nil {
				t.Error(err)
			}
			if err := renameNew(from, to); err != nil {
				t.Errorf("with nothing there the error is %v", err)
			}
			expect(to, "new")
			if err := renameNew(from, to+"2"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("without a part the error is %v", err)
			}
			if entries, _ := os.ReadDir(directory); len(entries) != 1 {
				t.Errorf("%v is in the directory, want the file alone", entries)
			}
		})
	}
}

func TestAFileSavedMeanwhileStays(t *testing.T) {
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f", noReplace: true}
	f, _ := begin(t, o, resource)
	writeAt(t, f, make([]byte, 1000), 0)
	if err := os.WriteFile(o.Name, []byte("saved meanwhile"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Commit(); !errors.Is(err, errExists) {
		t.Errorf("Commit returns %v", err)
	}
	if _, err := Create(o); !errors.Is(err, errExists) {
		t.Errorf("another Create returns %v", err)
	}
	if text, _ := os.ReadFile(o.Name); string(text) != "saved meanwhile" {
		t.Errorf("the file holds %q", text)
	}
	if err := os.Remove(o.Name); err != nil {
		t.Fatal(err)
	}
	f, have := begin(t, o, resource)
	if len(have) != 1 || have[0].Length != 1000 {
		t.Errorf("the next download has %v, want all", have)
	}
	commit(t, f)
	expectNames(t, o.Name, "file")
}

// A complete file stays, even if no download could continue it.
func TestAWholeFileStaysWhoseNameIsTaken(t *testing.T) {
	for _, resume := range []bool{true, false} {
		o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: resume, URL: "https://h/f", noReplace: true}
		f, _ := begin(t, o, transport.Resource{Size: 4, ETag: `"1"`, NoRanges: true})
		writeAt(t, f, []byte("text"), 0)
		if err := os.WriteFile(o.Name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.Commit()
		if told := strings.HasSuffix(err.Error(), "file.part is whole"); !errors.Is(err, errExists) || told != resume {
			t.Errorf("Commit returns %v", err)
		}
		if text, _ := os.ReadFile(o.Name + ".part"); (string(text) == "text") != resume {
			t.Errorf("the part holds %q", text)
		}
		if entries, _ := os.ReadDir(filepath.Dir(o.Name)); (len(entries) == 2) != resume {
			t.Errorf("%v is in the directory", entries)
		}
	}
}

func TestCheckFree(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkFree(filepath.Join(directory, "other")); err != nil {
		t.Error(err)
	}
	if err := checkFree(filepath.Join(directory, "file")); !errors.Is(err, errExists) {
		t.Errorf("a file that is there: %v", err)
	}
	if err := checkFree(filepath.Join(directory, "file", "below")); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a name below a file: %v", err)
	}
}
