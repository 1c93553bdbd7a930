package ownfile

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

// planted are files that others, or an accident, may put in a file's place.
var planted = map[string]struct {
	plant func(t *testing.T, name, victim string)
	want  string
}{
	"symbolic link":          {func(t *testing.T, name, victim string) { testkit.OK(t, os.Symlink(victim, name)) }, "it is a symbolic link"},
	"dangling symbolic link": {func(t *testing.T, name, victim string) { testkit.OK(t, os.Symlink(victim+".none", name)) }, "it is a symbolic link"},
	"hard link":              {func(t *testing.T, name, victim string) { testkit.OK(t, os.Link(victim, name)) }, "a hard link"},
	"FIFO":                   {func(t *testing.T, name, _ string) { testkit.OK(t, unix.Mkfifo(name, 0o666)) }, "it is no regular file"},
	"file of another user": {func(t *testing.T, name, _ string) {
		if os.Geteuid() != 0 {
			t.Skip("only root can make one")
		}
		testkit.OK(t, os.WriteFile(name, []byte("theirs"), 0o666))
		testkit.OK(t, os.Chown(name, 65534, 65534))
	}, "it belongs to another user (65534)"},
}

func TestPlantedFilesAreRefused(t *testing.T) {
	for what, p := range planted {
		for how, open := range map[string]func(string) (*os.File, error){
			"Open":         Open,
			"OpenOrCreate": func(name string) (*os.File, error) { return OpenOrCreate(name, 0o600) },
		} {
			t.Run(what+", "+how, func(t *testing.T) {
				directory := t.TempDir()
				name, victim := filepath.Join(directory, "file"), filepath.Join(directory, "victim")
				testkit.OK(t, os.WriteFile(victim, []byte("precious"), 0o600))
				p.plant(t, name, victim)
				opened := make(chan error, 1)
				go func() {
					file, err := open(name)
					if err == nil {
						file.Close()
					}
					opened <- err
				}()
				select {
				case err := <-opened:
					testkit.Holds(t, err != nil && strings.Contains(err.Error(), name+" is not used, because ") && strings.Contains(err.Error(), p.want), err)
				case <-time.After(time.Minute):
					t.Fatal("it waits for ever")
				}
				if entries, _ := os.ReadDir(directory); len(entries) != 2 {
					t.Errorf("%v is in the directory, want the file and the victim", entries)
				}
			})
		}
	}
}

func TestCreateReplacesFilesAndLinksThatArePlanted(t *testing.T) {
	for what, p := range planted {
		t.Run(what, func(t *testing.T) {
			directory := t.TempDir()
			name, victim := filepath.Join(directory, "file"), filepath.Join(directory, "victim")
			testkit.OK(t, os.WriteFile(victim, []byte("precious"), 0o600))
			p.plant(t, name, victim)
			file, err := Create(name, 0o600)
			if what == "FIFO" {
				testkit.Holds(t, err != nil && strings.Contains(err.Error(), name+" is not used, because "+p.want), err)
				return
			}
			testkit.OK(t, err)
			_, err = file.WriteString("mine")
			testkit.OK(t, err)
			testkit.OK(t, file.Close())
			if text, _ := os.ReadFile(victim); string(text) != "precious" {
				t.Errorf("the victim holds %q", text)
			}
			if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 || info.Size() != 4 {
				t.Errorf("the file is %v (%v)", info, err)
			}
			if entries, _ := os.ReadDir(directory); len(entries) != 2 {
				t.Errorf("%v is in the directory, want the file and the victim", entries)
			}
		})
	}
}

func TestCreateLeavesADirectory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	testkit.OK(t, os.Mkdir(name, 0o700))
	if _, err := Create(name, 0o600); err == nil || !strings.Contains(err.Error(), "replace "+name+": ") {
		t.Errorf("Create returns %v", err)
	}
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		t.Errorf("the directory is gone (%v)", err)
	}
}

func TestOpenOrCreateKeepsOnesOwn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if _, err := Open(name); !os.IsNotExist(err) {
		t.Errorf("Open of nothing returns %v", err)
	}
	for _, want := range []string{"", "text"} {
		file, err := OpenOrCreate(name, 0o600)
		testkit.OK(t, err)
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("the file holds %q (%v), want %q", text, err, want)
		}
		_, err = file.WriteString("text")
		testkit.OK(t, err)
		testkit.OK(t, file.Close())
	}
	file, err := Open(name)
	testkit.OK(t, err)
	testkit.OK(t, file.Close())
}

// If all files get the same owner, who is not this user, the user's own files are accepted.
func TestAFileSystemMayNameAnotherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can have its files created as another user's")
	}
	const given, other = 65534, 65533
	directory := t.TempDir()
	testkit.OK(t, os.Chmod(filepath.Dir(directory), 0o711))
	testkit.OK(t, os.Chmod(directory, 0o777))
	name, foreign := filepath.Join(directory, "file"), filepath.Join(directory, "foreign")
	testkit.OK(t, os.WriteFile(foreign, nil, 0o666))
	testkit.OK(t, os.Chown(foreign, other, other))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	testkit.OK(t, unix.Setfsuid(given))
	defer unix.Setfsuid(0)
	for range 2 {
		file, err := OpenOrCreate(name, 0o600)
		testkit.OK(t, err)
		testkit.OK(t, file.Close())
	}
	if _, err := Open(foreign); err == nil || !strings.Contains(err.Error(), "it belongs to another user (65533)") {
		t.Errorf("another user's file: %v", err)
	}
	if entries, _ := os.ReadDir(directory); len(entries) != 2 {
		t.Errorf("%v is in the directory, want the two files", entries)
	}
}
