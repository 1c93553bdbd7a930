package plainfile

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/tests/testkit"
)

const old, fresh = "old", "new"

// place makes the file of a case of the rule. It returns its name, and what was written into it.
func place(t *testing.T, is string) (name string, filled func() string) {
	t.Helper()
	directory := t.TempDir()
	name = filepath.Join(directory, "it")
	if to, ok := strings.CutPrefix(is, "link to "); ok {
		other, filled := place(t, to)
		testkit.OK(t, os.Symlink(other, name))
		return name, filled
	}
	filled = func() string { return fresh } // A null device keeps nothing.
	own := func(file *os.File) string {
		t.Cleanup(func() { file.Close() })
		return "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
	}
	node := func(kind uint32, major, minor uint32) {
		if err := unix.Mknod(name, kind|0o600, int(unix.Mkdev(major, minor))); errors.Is(err, unix.EPERM) {
			t.Skip("only root makes devices")
		} else {
			testkit.OK(t, err)
		}
	}
	switch is {
	case "nothing":
	case "file":
		testkit.OK(t, os.WriteFile(name, []byte(old), 0o600))
	case "pipe":
		testkit.OK(t, unix.Mkfifo(name, 0o600))
		both, err := os.OpenFile(name, os.O_RDWR, 0)
		testkit.OK(t, err)
		t.Cleanup(func() { both.Close() })
		filled = func() string {
			text := make([]byte, 100)
			n, _ := both.Read(text)
			return string(text[:n])
		}
	case "null device":
		node(unix.S_IFCHR, 1, 3)
	case "block device":
		node(unix.S_IFBLK, 42, 0)
	case "open file":
		file, err := os.Create(name)
		testkit.OK(t, err)
		_, err = file.WriteString(old)
		testkit.OK(t, err)
		path := name
		name = own(file)
		filled = func() string {
			text, _ := os.ReadFile(path)
			return strings.TrimPrefix(string(text), old)
		}
	case "open pipe":
		reader, writer, err := os.Pipe()
		testkit.OK(t, err)
		name = own(writer)
		filled = func() string {
			text := make([]byte, 100)
			n, _ := reader.Read(text)
			reader.Close()
			return string(text[:n])
		}
	case "socket":
		listener, err := net.Listen("unix", name)
		testkit.OK(t, err)
		t.Cleanup(func() { listener.Close() })
	case "directory":
		testkit.OK(t, os.Mkdir(name, 0o700))
	default:
		t.Fatalf("the rule knows %q", is)
	}
	return name, filled
}

type ruleCase struct{ Name, Written, Read string }

func rule(t *testing.T) (cases []ruleCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/rule.json")
	testkit.OK(t, err)
	testkit.OK(t, json.Unmarshal(text, &cases))
	return cases
}

// put writes like all code that writes a user's file.
func put(name string) (how string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	into, err := Into(ctx, name)
	if err != nil {
		return "refused", err
	}
	if into != nil {
		_, err := into.WriteString(fresh)
		return "filled", errors.Join(err, into.Close())
	}
	how = "made"
	if _, err := os.Lstat(name); err == nil {
		how = "replaced"
	}
	part := name + ".part"
	if err := os.WriteFile(part, []byte(fresh), 0o600); err != nil {
		return "", err
	}
	if err := Rename(part, name); err != nil {
		return "refused", errors.Join(err, os.Remove(part))
	}
	return how, nil
}

func TestTheRuleForWriting(t *testing.T) {
	for _, c := range rule(t) {
		t.Run(c.Name, func(t *testing.T) {
			name, filled := place(t, c.Name)
			before, _ := os.Lstat(name)
			how, err := put(name)
			testkit.Holds(t, how == c.Written && (how == "refused") == (err != nil), how, err, c.Written)
			after, _ := os.Lstat(name)
			switch c.Written {
			case "made", "replaced":
				if text, err := os.ReadFile(name); err != nil || string(text) != fresh || !after.Mode().IsRegular() {
					t.Errorf("the file holds %q (%v), and is %v", text, err, after)
				}
			case "filled":
				testkit.Same(t, filled(), fresh)
				fallthrough
			case "refused":
				testkit.Holds(t, os.SameFile(before, after), after, before)
				testkit.Holds(t, err == nil || strings.Contains(err.Error(), name+" is a ") && !strings.Contains(err.Error(), "\n"), err)
			}
		})
	}
}

func TestTheRuleForReading(t *testing.T) {
	for _, c := range rule(t) {
		t.Run(c.Name, func(t *testing.T) {
			name, _ := place(t, c.Name)
			if c.Name == "open pipe" {
				reader, writer, err := os.Pipe()
				testkit.OK(t, err)
				testkit.OK(t, writer.Close())
				defer reader.Close()
				name = "/proc/self/fd/" + strconv.Itoa(int(reader.Fd()))
			} else if strings.HasSuffix(c.Name, "pipe") {
				name = filepath.Join(t.TempDir(), "pipe") // Without a writer this pipe is at its end.
				testkit.OK(t, unix.Mkfifo(name, 0o600))
			}
			began := time.Now()
			_, err := Read(name, 1000)
			testkit.Same(t, (err == nil), (c.Read == "read"), c.Read)
			plain := strings.HasSuffix(c.Name, " file") || c.Name == "file"
			file, err := Open(name)
			testkit.Same(t, (err == nil), plain)
			if err == nil {
				file.Close()
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestReadingIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "zero")
	if err := unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
		t.Skip("only root makes devices")
	}
	if _, err := Read(name, 1000); err == nil || !strings.Contains(err.Error(), "is larger than 1000 bytes") {
		t.Errorf("reading for ever returns %v", err)
	}
}

// Opening a pipe waits for its reader until the context ends.
func TestAPipeWithoutAReader(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	testkit.OK(t, unix.Mkfifo(name, 0o600))
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("interrupted")) })
	if _, err := Into(ctx, name); err == nil || !strings.HasSuffix(err.Error(), "nobody reads from it: interrupted") {
		t.Errorf("Into returns %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		into, err := Into(context.Background(), name)
		if err == nil {
			_, err = into.WriteString(fresh)
			err = errors.Join(err, into.Close())
		}
		opened <- err
	}()
	time.Sleep(50 * time.Millisecond) // The writer waits by then.
	reader, err := os.Open(name)
	testkit.OK(t, err)
	defer reader.Close()
	if text, err := io.ReadAll(reader); err != nil || string(text) != fresh {
		t.Errorf("read is %q (%v)", text, err)
	}
	testkit.OK(t, <-opened)
}

func TestATerminalIsRefused(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	testkit.OK(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	testkit.OK(t, err)
	name := "/dev/pts/" + strconv.Itoa(number)
	if _, err := Into(context.Background(), name); err == nil || !strings.Contains(err.Error(), name+" is a terminal: allowed are ") {
		t.Errorf("Into returns %v", err)
	}
}
