package partfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linklab/linklab/client/internal/quantity"
	"github.com/linklab/linklab/client/internal/ranges"
	"github.com/linklab/linklab/client/internal/transport"
	"github.com/linklab/linklab/client/tests/testkit"
)

var resource = transport.Resource{Size: 1000, ETag: `"1"`, LastModified: "Sat, 01 Jan 2000 00:00:00 GMT"}

// create opens the file. Like writeAt, abort and commit it ends the test on failure.
func create(t *testing.T, o Options) *File {
	t.Helper()
	f, err := Create(o)
	testkit.OK(t, err)
	return f
}

func writeAt(t *testing.T, f *File, p []byte, offset int64) {
	t.Helper()
	if _, err := f.WriteAt(p, offset); err != nil {
		t.Fatal(err)
	}
}

func abort(t *testing.T, f *File, distrust bool) {
	t.Helper()
	testkit.OK(t, f.Abort(distrust))
}

func commit(t *testing.T, f *File) {
	t.Helper()
	if _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
}

// begin opens the file and begins with a resource.
func begin(t *testing.T, o Options, r transport.Resource) (*File, []ranges.Range) {
	t.Helper()
	f := create(t, o)
	have, err := f.Begin(r, ranges.Range{Length: r.Size})
	testkit.OK(t, err)
	return f, have
}

// leave writes two ranges and aborts.
func leave(t *testing.T, o Options, r transport.Resource) {
	t.Helper()
	f, _ := begin(t, o, r)
	for _, offset := range []quantity.Bytes{0, 400} {
		writeAt(t, f, bytes.Repeat([]byte{byte(offset)}, 100), int64(offset))
	}
	abort(t, f, false)
}

func TestTheNextDownloadKeepsWrittenRanges(t *testing.T) {
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
	leave(t, o, resource)
	// A download that never learns the resource changes nothing.
	f := create(t, o)
	abort(t, f, false)
	f, have := begin(t, o, resource)
	if want := []ranges.Range{{Offset: 0, Length: 100}, {Offset: 400, Length: 100}}; !reflect.DeepEqual(have, want) {
		t.Fatalf("%+v is kept, want %+v", have, want)
	}
	for _, r := range []ranges.Range{{Offset: 100, Length: 300}, {Offset: 500, Length: 500}} {
		writeAt(t, f, make([]byte, r.Length), int64(r.Offset))
	}
	commit(t, f)
	got, err := os.ReadFile(o.Name)
	want := make([]byte, 1000)
	copy(want[400:], bytes.Repeat([]byte{400 & 0xff}, 100))
	testkit.Holds(t, err == nil && bytes.Equal(got, want), got, err)
	expectNames(t, o.Name, "file")
}

// A part of another resource is refused. A part whose state says nothing of it is overwritten.
func TestOtherStatesAreNotUsed(t *testing.T) {
	other := func(change func(*transport.Resource)) transport.Resource {
		r := resource
		change(&r)
		return r
	}
	for name, r := range map[string]transport.Resource{
		"other ETag":          other(func(r *transport.Resource) { r.ETag = `"2"` }),
		"weak ETag now":       other(func(r *transport.Resource) { r.ETag = "" }),
		"other size":          other(func(r *transport.Resource) { r.Size = 999 }),
		"much larger":         other(func(r *transport.Resource) { r.Size = 1 << 60 }),
		"no size":             other(func(r *transport.Resource) { r.Size = -1 }),
		"other Last-Modified": other(func(r *transport.Resource) { r.LastModified = "" }),
		"no validator":        other(func(r *transport.Resource) { r.ETag, r.LastModified = "", "" }),
		"no ranges now":       other(func(r *transport.Resource) { r.NoRanges = true }),
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
			leave(t, o, resource)
			refuse(t, o, r)
		})
	}
	for name, damage := range map[string]func(part, state string) error{
		"no part":      func(part, _ string) error { return os.Remove(part) },
		"shorter part": func(part, _ string) error { return os.Truncate(part, 500) },
		"no state":     func(_, state string) error { return os.Remove(state) },
		"cut state":    func(_, state string) error { return os.Truncate(state, 50) },
		"empty state":  func(_, state string) error { return os.Truncate(state, 0) },
		"one bit of the state": func(_, state string) error {
			text, err := os.ReadFile(state)
			text[bytes.IndexByte(text, '4')] ^= 1
			return errors.Join(err, os.WriteFile(state, text, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
			leave(t, o, resource)
			testkit.OK(t, damage(o.Name+".part", o.Name+".part.state"))
			f, have := begin(t, o, resource)
			defer f.Abort(true)
			testkit.Holds(t, have == nil, have)
			if _, err := os.Stat(o.Name + ".part.state"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the state is there still (%v)", err)
			}
		})
	}
}

func TestAnUnusablePartIsRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		resource transport.Resource
		resume   bool
		distrust bool
	}{
		"no validator":  {transport.Resource{Size: 1000}, true, false},
		"not wanted":    {resource, false, false},
		"distrusted":    {resource, true, true},
		"size unknown":  {transport.Resource{Size: -1, ETag: `"1"`}, true, false},
		"without range": {transport.Resource{Size: 1000, ETag: `"1"`, NoRanges: true}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: test.resume, URL: "https://h/f"}
			f, _ := begin(t, o, test.resource)
			writeAt(t, f, []byte("text"), 0)
			abort(t, f, test.distrust)
			expectNames(t, o.Name)
		})
	}
}

// A killed process leaves the state of its last checkpoint. Nothing beyond it is used.
func TestACheckpointListsOnlyWrittenBytes(t *testing.T) {
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
	f, _ := begin(t, o, resource)
	f.record.checked = f.record.checked.Add(-checkpointTime)
	for _, offset := range []quantity.Bytes{100, 600} {
		writeAt(t, f, []byte("text"), int64(offset))
		f.record.settle()
	}
	s, err := readState(o.Name + ".part.state")
	if want := []ranges.Range{{Offset: 100, Length: 4}}; err != nil || !reflect.DeepEqual(s.ranges(), want) {
		t.Errorf("the state tells of %+v (%v), want %+v", s.ranges(), err, want)
	}
	f.part.file.Close() // As the kernel does for a killed process.
	f, have := begin(t, o, resource)
	defer f.Abort(true)
	testkit.Same(t, len(have), 1)
}

// The kernel reports a failed write to the disk only once.
func TestAFailedSyncIsNotForgotten(t *testing.T) {
	commit := func(f *File) error { _, err := f.Commit(); return err }
	abort := func(f *File) error { return f.Abort(false) }
	for name, test := range map[string]struct {
		checkpoint bool
		end        func(*File) error
	}{
		"write": {true, func(f *File) error {
			_, err := f.WriteAt([]byte("text"), 0)
			return errors.Join(err, f.Abort(false))
		}},
		"commit":                  {true, commit},
		"commit, at its own sync": {false, commit},
		"abort, at its own sync":  {false, abort},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
			leave(t, o, resource)
			f, _ := begin(t, o, resource)
			f.part.flush = failingOnce()
			if test.checkpoint {
				f.record.checked = f.record.checked.Add(-checkpointTime)
			}
			writeAt(t, f, make([]byte, 1000), 0)
			f.record.settle()
			if err := test.end(f); !errors.Is(err, unix.EIO) {
				t.Errorf("the error is %v, want that of the sync", err)
			}
			expectNames(t, o.Name)
		})
	}
}

// An older state is still right: it lists bytes that are on the disk. A part without any is of no use.
func TestAStateThatCannotBeWrittenLeavesTheOlderOne(t *testing.T) {
	content := text("1", 400_000)
	for _, isOlder := range []bool{true, false} {
		o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
		var want []ranges.Range
		if isOlder {
			o, want = interrupted(t, content, nil), []ranges.Range{most}
		}
		f, _ := begin(t, o, resourceOf(content, `"1"`))
		write(t, f, content, ranges.Range{Offset: mostOfIt, Length: 1000})
		inTheWay := o.Name + ".part.state.new"
		testkit.OK(t, os.Mkdir(inTheWay, 0o700))
		if err := f.Abort(false); err == nil || !strings.Contains(err.Error(), inTheWay) {
			t.Errorf("Abort returns %v", err)
		}
		testkit.OK(t, os.Remove(inTheWay))
		if want == nil {
			expectNames(t, o.Name)
		}
		f, have := begin(t, o, resourceOf(content, `"1"`))
		testkit.Alike(t, have, want)
		finish(t, f, have, content)
	}
}

// What stays beside a finished file is told.
func TestAStateThatCannotBeRemoved(t *testing.T) {
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
	content := text("1", 1000)
	f, _ := begin(t, o, resourceOf(content, `"1"`))
	write(t, f, content, ranges.Range{Length: 1000})
	testkit.OK(t, os.MkdirAll(o.Name+".part.state/full", 0o700))
	if _, err := f.Commit(); !errors.Is(err, unix.EISDIR) {
		t.Errorf("Commit returns %v", err)
	}
	if got, err := os.ReadFile(o.Name); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the file is wrong (%v)", err)
	}
}

// failingOnce returns a sync that fails once, as fsync does.
func failingOnce() func() error {
	err := error(&os.PathError{Op: "sync", Path: "file.part", Err: unix.EIO})
	return func() error {
		defer func() { err = nil }()
		return err
	}
}

// A download whose part was replaced ends before its end.
func TestALostPartIsNoticedAtTheCheckpoint(t *testing.T) {
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
	f, _ := begin(t, o, resource)
	testkit.OK(t, os.Remove(o.Name+".part"))
	f.record.checked = f.record.checked.Add(-checkpointTime)
	writeAt(t, f, []byte("text"), 0)
	f.record.settle()
	if _, err := f.WriteAt([]byte("text"), 4); err == nil || err.Error() != o.Name+".part was removed or replaced during the download" {
		t.Errorf("the next write ends with %v", err)
	}
	abort(t, f, false)
	expectNames(t, o.Name)
}

// A complete file with a wrong checksum is kept, and no call continues it.
func TestAWrongDigestLeavesTheFileAlone(t *testing.T) {
	o := Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true, URL: "https://h/f"}
	r := resource
	r.SHA256 = make([]byte, 32)
	f, _ := begin(t, o, r)
	writeAt(t, f, make([]byte, 1000), 0)
	if _, err := f.Commit(); err == nil || !strings.Contains(err.Error(), "(Repr-Digest); it stays as "+o.Name+".part") {
		t.Errorf("Commit returns %v", err)
	}
	expectNames(t, o.Name, "file.part")
	f, have := begin(t, o, resource)
	defer f.Abort(false)
	testkit.Holds(t, have == nil, have)
}

// A full disk is noticed before the download, or ends it with an error.
func TestFullDisk(t *testing.T) {
	f := create(t, Options{Name: filepath.Join(t.TempDir(), "file"), Resume: true})
	r := resource
	r.Size = 1 << 60
	if _, err := f.Begin(r, ranges.Range{Length: r.Size}); err == nil || !strings.Contains(err.Error(), "reserve 1152921504606846976 bytes") {
		t.Errorf("Begin returns %v", err)
	}
	abort(t, f, false)
	expectNames(t, f.Name)
}

func FuzzParseState(f *testing.F) {
	for _, s := range []state{
		newState("https://h/f", resource, nil),
		newState("https://h/f", resource, []ranges.Range{{Offset: 0, Length: 10}, {Offset: 20, Length: 980}}),
		{Format: 1, Size: 10, Written: [][2]int64{{5, 6}}},
		{Format: 1, Size: 10, Written: [][2]int64{{5, 2}, {0, 1}}},
		{Format: 1, Size: -1 << 63, Written: [][2]int64{{0, 1<<63 - 1}}},
		{Format: 2},
	} {
		text, err := s.encode()
		testkit.OK(f, err)
		line, _, _ := bytes.Cut(text, []byte("\n"))
		f.Add(line, text)
	}
	f.Fuzz(func(t *testing.T, line, text []byte) {
		// Random text has a wrong checksum. Try it with the right one, too.
		parseState(text)
		s, err := parseState(signed(line))
		if err != nil {
			return
		}
		end := quantity.Bytes(-1)
		for _, r := range s.ranges() {
			if r.Offset <= end || r.Length <= 0 || r.End() < r.Offset || r.End() > quantity.Bytes(s.Size) {
				t.Fatalf("%q is accepted with %+v", line, s)
			}
			end = r.End()
		}
		again, err := s.encode()
		testkit.OK(t, err)
		if twice, err := parseState(again); err != nil || !reflect.DeepEqual(twice, s) {
			t.Fatalf("%+v becomes %+v (%v)", s, twice, err)
		}
	})
}
